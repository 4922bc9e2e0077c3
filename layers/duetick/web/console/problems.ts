/** A problem in words, for a page or a dialog. */
import { DuetickError } from "../client/src/index.js";

/** Return what the API refused, or which name no path can have. Anything else is a defect: report it, too. */
export function inWords(problem: unknown): string {
  if (problem instanceof DuetickError || problem instanceof RangeError) return problem.message;
  reportError(problem);
  return `The console failed: ${String(problem)}`;
}
