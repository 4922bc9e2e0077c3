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
  execFileSync(process.execPath, [join(tools, tool), ...rest], { stdio: ["ignore", 2, 2] });

function client() {
  const sources = join(into, "client/src");
  mkdirSync(sources, { recursive: true });
  const index = readFileSync(join(web, "client/src/index.ts"));
  writeFileSync(join(sources, "index.ts"), index);
  const types = join(sources, "api.d.ts");
  const document = join(web, "../duetick/api/openapi.json");
  run("openapi-typescript/bin/cli.js", document, "--output", types);
  const made = join(into, "client/lib");
  writeFileSync(join(into, "client/package.json"), readFileSync(join(web, "client/package.json")));
  const shared = JSON.parse(readFileSync(join(web, "tsconfig.json"), "utf8")).compilerOptions;
  const compilerOptions = { ...shared, noEmit: false, declaration: true, rootDir: sources, outDir: made };
  const config = join(into, "client/tsconfig.json");
  writeFileSync(config, JSON.stringify({ compilerOptions, files: [join(sources, "index.ts")] }));
  run("typescript/bin/tsc", "-p", config);
  cpSync(types, join(made, "api.d.ts"));
}

function pages() {
  const made = join(into, "pages");
  mkdirSync(made, { recursive: true });
  const bundle = (entryPoints, more = {}) =>
    esbuild.buildSync({
      entryPoints: entryPoints.map((one) => join(web, one)),
      outdir: made,
      entryNames: "[name]",
      bundle: true,
      minify: true,
      charset: "utf8",
      legalComments: "none",
      target: "es2022",
      format: "esm",
      ...more,
    });
  bundle(["console/opening.ts", "console/console.ts", "console/console.css", "picker/picker.ts"]);
  bundle(["picker/example.ts", "picker/example.css"]);
  for (const page of ["console/console.html", "console/icon.svg", "picker/example.html"])
    cpSync(join(web, page), join(made, page.split("/")[1]));
}

client();
pages();
