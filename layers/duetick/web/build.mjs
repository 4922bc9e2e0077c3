/**
 * Build the pages and the client: `node build.mjs FOLDER`. The folder gets `client` (the types, and the
 * package's dist) and `pages`. The tools come from the node_modules that DUETICK_NODE_MODULES names.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const web = dirname(fileURLToPath(import.meta.url));
const tools = process.env.DUETICK_NODE_MODULES;
const into = process.argv[2] && resolve(process.argv[2]);
if (!tools || !into) throw new Error("Say DUETICK_NODE_MODULES=… node build.mjs FOLDER; `make pages` does.");
const esbuild = createRequire(join(tools, "esbuild/package.json"))("esbuild");

const run = (tool, ...rest) =>
  execFileSync(process.execPath, [join(tools, tool), ...rest], { stdio: ["ignore", "ignore", "inherit"] });

function client() {
  const sources = join(into, "client/src");
  mkdirSync(sources, { recursive: true });
  const index = readFileSync(join(web, "client/src/index.ts"));
  writeFileSync(join(sources, "index.ts"), index);
  const types = join(sources, "api.d.ts");
  const document = join(web, "../duetick/api/openapi.json");
  run("openapi-typescript/bin/cli.js", document, "--output", types);
  const made = join(into, "client/dist");
  const options = ["--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext"];
  const strict = ["--strict", "--types", "", "--lib", "es2022,dom,dom.iterable"];
  const out = ["--rootDir", sources, "--outDir", made, "--declaration"];
  writeFileSync(join(into, "client/package.json"), readFileSync(join(web, "client/package.json")));
  run("typescript/bin/tsc", join(sources, "index.ts"), ...options, ...strict, ...out);
  cpSync(types, join(made, "api.d.ts"));
}

function pages() {
  const made = join(into, "pages");
  mkdirSync(made, { recursive: true });
  const bundle = (entryPoints, more = {}) =>
    esbuild.buildSync({
      entryPoints: entryPoints.map((one) => join(web, one)),
      outdir: made,
      bundle: true,
      minify: true,
      charset: "utf8",
      legalComments: "none",
      target: "es2022",
      format: "esm",
      ...more,
    });
  bundle(["console/console.ts", "console/console.css", "picker/picker.ts"]);
  bundle(["picker/example.ts", "picker/example.css"]);
  for (const page of ["console/console.html", "picker/example.html"])
    cpSync(join(web, page), join(made, page.split("/")[1]));
}

client();
pages();
