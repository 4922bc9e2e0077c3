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
const load = createRequire(join(tools, "tools.cjs"));
const [esbuild, ts] = [load("esbuild"), load("typescript")];

const run = (tool, ...rest) =>
  execFileSync(process.execPath, [join(tools, tool), ...rest], { stdio: ["ignore", 2, 2] });

/** The types are checked by a test: here each file is translated by itself, which takes no time. */
function client() {
  const sources = join(into, "client/src");
  const made = join(into, "client/lib");
  for (const folder of [sources, made]) mkdirSync(folder, { recursive: true });
  const types = join(sources, "api.d.ts");
  run("openapi-typescript/bin/cli.js", join(web, "../duetick/api/openapi.json"), "--output", types);
  const shared = JSON.parse(readFileSync(join(web, "tsconfig.json"), "utf8")).compilerOptions;
  const { options } = ts.convertCompilerOptionsFromJson({ ...shared, lib: undefined, module: "esnext", noEmit: false }, web);
  const index = readFileSync(join(web, "client/src/index.ts"), "utf8");
  const given = { compilerOptions: { ...options, declaration: true }, fileName: "index.ts", reportDiagnostics: true };
  const results = { "index.js": ts.transpileModule(index, given), "index.d.ts": ts.transpileDeclaration(index, given) };
  for (const [name, { outputText, diagnostics = [] }] of Object.entries(results)) {
    for (const one of diagnostics) throw new Error(`${name}: ${ts.flattenDiagnosticMessageText(one.messageText, " ")}`);
    writeFileSync(join(made, name), outputText);
  }
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
