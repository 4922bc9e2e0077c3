/**
 * `<duetick-schedule>`: a form for one schedule of an application's own user.
 *
 *     <duetick-schedule url="https://…/v1" schedule="digest" flow="digests" action="send"></duetick-schedule>
 *     element.token = () => session.idToken();   element.input = { topic: "news" };
 */
import { Duetick, DuetickError, type Schemas } from "../client/src/index.js";
import { render } from "../view/view.js";
import { type Draft, EMPTY, FIELD, type Field, read, write } from "./expressions.js";
import { form } from "./form.js";
import { type Labels, translated } from "./labels.js";
import { styles } from "./styles.js";
import { ownZone } from "./zones.js";

type Schedule = Schemas["ScheduleView"];
type Preview = Schemas["PreviewView"];

type Token = string | (() => string | Promise<string>);

const TYPING_MS = 250;
const FIRES = 5;
const LINES = 20;

/** What the form shows. */
export interface Shown {
  readonly labels: Labels;
  readonly draft: Draft;
  readonly timezone: string;
  /** What is typed to find a time zone, and the one of the list that Enter takes; null: nothing. */
  readonly sought: { readonly text: string; readonly active: number } | null;
  readonly preview: Preview | null;
  readonly looking: boolean;
  readonly errors: Readonly<Partial<Record<Field | "timezone" | "form", string>>>;
  readonly schedule: Schedule | null;
  readonly said: string;
  readonly asksToDelete: boolean;
  readonly history: readonly Schemas["OccurrenceView"][] | null;
  readonly busy: boolean;
}

/** What somebody does with it. */
export interface Acts {
  edit(change: Partial<Draft>): void;
  seekZone(sought: Shown["sought"]): void;
  chooseZone(zone: string): void;
  save(): void;
  pause(): void;
  resume(): void;
  askToDelete(asks: boolean): void;
  remove(): void;
  toggleHistory(): void;
  format(local: string): string;
  moment(utc: string): string;
}

export class DuetickSchedule extends HTMLElement {
  static readonly observedAttributes = ["url", "schedule", "lang"];

  #token: Token = "";
  #input: unknown = null;
  #policies: Schemas["PoliciesShape"] | undefined;
  readonly #root: ShadowRoot;
  #given: Partial<Labels> | undefined;
  #shown: Shown;
  #kept: { draft: Draft; timezone: string; cron: string } | null = null;
  #etag: string | undefined;
  #once = crypto.randomUUID();
  #reads = 0;
  #looks: AbortController | null = null;
  #timer = 0;

  constructor() {
    super();
    this.#root = this.attachShadow({ mode: "open", delegatesFocus: true });
    this.#root.adoptedStyleSheets = [styles()];
    this.#shown = { ...fresh(), labels: translated(undefined), busy: false };
  }

  /** The user's token, or a function that gives one that is valid now. Without it nothing is asked. */
  get token(): Token {
    return this.#token;
  }

  set token(token: Token) {
    const first = !this.#token;
    this.#token = token;
    if (first && token && this.isConnected) void this.reload();
  }

  /** The input of a new schedule; one that is there keeps its own. */
  get input(): unknown {
    return this.#input;
  }

  set input(input: unknown) {
    this.#input = input;
  }

  /** The policies of a new schedule. */
  get policies(): Schemas["PoliciesShape"] | undefined {
    return this.#policies;
  }

  set policies(policies: Schemas["PoliciesShape"] | undefined) {
    this.#policies = policies;
  }

  /** Words in another language; those that are missing stay English. */
  set labels(given: Partial<Labels> | undefined) {
    this.#given = given;
    this.#show({ labels: translated(given) });
  }

  get labels(): Partial<Labels> | undefined {
    return this.#given;
  }

  /** The schedule as it was read or saved last. */
  get value(): Schedule | null {
    return this.#shown.schedule;
  }

  connectedCallback(): void {
    for (const name of ["token", "input", "policies", "labels"] as const) this.#upgrade(name);
    if (this.#token) void this.reload();
    else this.#show({});
  }

  /** Take what a page has set before this class was known. */
  #upgrade(name: "token" | "input" | "policies" | "labels"): void {
    const own = Object.getOwnPropertyDescriptor(this, name);
    if (!own) return;
    Reflect.deleteProperty(this, name);
    Reflect.set(this, name, own.value);
  }

  disconnectedCallback(): void {
    clearTimeout(this.#timer);
    this.#looks?.abort();
  }

  attributeChangedCallback(name: string, before: string | null, after: string | null): void {
    if (!this.isConnected || !this.#token || before === after) return;
    if (name === "lang") this.#show({});
    else if (after !== this.#shown.schedule?.key) void this.reload();
  }

  /** Read the schedule anew, and forget what was entered. Of several reads the last one counts. */
  async reload(): Promise<void> {
    const { key } = this;
    const mine = ++this.#reads;
    this.#kept = null;
    this.#once = crypto.randomUUID();
    this.#show({ ...fresh(), busy: key !== null });
    if (key !== null) {
      const show = await this.#read(key);
      if (mine !== this.#reads) return;
      show();
      this.#show({ busy: false });
    }
    this.#look();
  }

  /** Read a schedule, and return how to show it, or why it cannot be shown. */
  async #read(key: string): Promise<() => void> {
    try {
      const found = await this.#api().get("/api/schedules/{key}", { path: { key } });
      return () => this.#take(found.body, found.etag);
    } catch (problem) {
      if (problem instanceof DuetickError && problem.status === 404) return () => undefined;
      return () => this.#refuse(problem);
    }
  }

  private get key(): string | null {
    return this.getAttribute("schedule");
  }

  #api(): Duetick {
    return new Duetick({ url: this.getAttribute("url") ?? "", token: this.#token });
  }

  /** Show a schedule as it is stored. */
  #take(schedule: Schedule, etag: string | undefined): void {
    const draft = read(schedule.cron);
    const timezone = schedule.timezone ?? "UTC";
    this.#kept = { draft, timezone, cron: schedule.cron };
    this.#etag = etag;
    this.#show({ schedule, draft, timezone });
  }

  /** The expression to send: what is stored stays to the letter as long as nobody changes it. */
  #cron(): { cron: string } | { missing: Field } {
    const { draft } = this.#shown;
    if (this.#kept && this.#kept.draft === draft) return { cron: this.#kept.cron };
    return write(draft);
  }

  /** The time zone to send: without one, what is stored means UTC, and stays without one. */
  #zone(): string | null {
    const { schedule, timezone } = this.#shown;
    return schedule && this.#kept?.timezone === timezone ? schedule.timezone : timezone;
  }

  #show(change: Partial<Shown>): void {
    this.#shown = { ...this.#shown, ...change };
    if (this.isConnected) render(this.#root, form(this.#shown, this.#acts));
  }

  readonly #acts: Acts = {
    edit: (change) => {
      const draft = { ...this.#shown.draft, ...change };
      this.#show({ draft, said: "", errors: {} });
      this.#lookSoon();
    },
    seekZone: (sought) => this.#show({ sought }),
    chooseZone: (timezone) => {
      this.#show({ timezone, sought: null, said: "", errors: {} });
      this.#lookSoon();
    },
    save: () => void this.#try(() => this.#save()),
    pause: () => void this.#try(() => this.#change("pause")),
    resume: () => void this.#try(() => this.#change("resume")),
    askToDelete: (asksToDelete) => this.#show({ asksToDelete }),
    remove: () => void this.#try(() => this.#remove()),
    toggleHistory: () => void this.#try(() => this.#toggleHistory()),
    format: (local) => this.#format(local),
    moment: (utc) => this.#moment(utc),
  };

  #lookSoon(): void {
    clearTimeout(this.#timer);
    this.#show({ looking: true });
    this.#timer = setTimeout(() => this.#look(), TYPING_MS);
  }

  /** Ask what is entered means; of several questions the last answer counts. */
  #look(): void {
    clearTimeout(this.#timer);
    this.#looks?.abort();
    if (!this.#token) return;
    const written = this.#cron();
    if ("missing" in written) {
      this.#show({ preview: null, looking: false });
      return;
    }
    const { signal } = (this.#looks = new AbortController());
    const policies = this.#shown.schedule?.policies ?? this.#policies;
    const body = { ...written, timezone: this.#zone(), limit: FIRES, ...(policies ? { policies } : {}) };
    this.#api()
      .post("/api/upcoming", { body, signal })
      .then(
        (found) => this.#show({ preview: found.body, looking: false, errors: formAlone(this.#shown.errors) }),
        (problem: unknown) => {
          if (!signal.aborted) this.#fail(problem, { preview: null, looking: false });
        },
      );
  }

  async #save(): Promise<void> {
    const written = this.#cron();
    if ("missing" in written) {
      const { missing } = written;
      this.#show({ errors: { [missing]: this.#shown.labels.missing[missing] } });
      this.#focusOnError();
      return;
    }
    const { key } = this;
    const saved = await this.#send(written.cron);
    this.#once = crypto.randomUUID();
    if (key === this.key) {
      this.#take(saved.body, saved.etag);
      this.#show({ said: this.#shown.labels.saved });
      this.setAttribute("schedule", saved.body.key);
      this.#look();
    }
    this.#tell("saved", { schedule: saved.body, warning: saved.warning });
  }

  #send(cron: string): Promise<{ body: Schedule; etag: string | undefined; warning: string | undefined }> {
    const { schedule } = this.#shown;
    const { key } = this;
    const times = { cron, timezone: this.#zone() };
    if (schedule && key !== null) {
      const match = this.#etag === undefined ? {} : { ifMatch: this.#etag };
      return this.#api().patch("/api/schedules/{key}", { path: { key }, body: times, ...match });
    }
    const [flow, action] = [this.getAttribute("flow") ?? "", this.getAttribute("action") ?? ""];
    const policies = this.#policies ? { policies: this.#policies } : {};
    const body = { ...times, flow, action, input: this.#input as Schemas["JsonValue"], ...policies };
    if (key !== null)
      return this.#api().put("/api/schedules/{key}", { path: { key }, body, ifNoneMatch: "*" });
    return this.#api().post("/api/schedules", { body, idempotencyKey: this.#once });
  }

  async #change(verb: "pause" | "resume"): Promise<void> {
    const { key } = this;
    if (key === null) return;
    const path = { key };
    const changed =
      verb === "pause"
        ? await this.#api().post("/api/schedules/{key}/pause", { path })
        : await this.#api().post("/api/schedules/{key}/resume", { path });
    if (key === this.key) {
      this.#take(changed.body, changed.etag);
      this.#show({ said: verb === "pause" ? "" : this.#shown.labels.resumed });
      this.#look();
    }
    this.#tell(verb === "pause" ? "paused" : "resumed", { schedule: changed.body });
  }

  async #remove(): Promise<void> {
    const { key } = this;
    if (key === null) return;
    await this.#api().delete("/api/schedules/{key}", { path: { key } });
    if (key === this.key) {
      this.#kept = null;
      this.#show({ schedule: null, asksToDelete: false, history: null, said: this.#shown.labels.deleted });
    }
    this.#tell("deleted", { key });
  }

  async #toggleHistory(): Promise<void> {
    const { key } = this;
    if (this.#shown.history || key === null) return this.#show({ history: null });
    const path = { key };
    const found = await this.#api().get("/api/schedules/{key}/history", { path, query: { limit: LINES } });
    if (key === this.key) this.#show({ history: found.body.history });
  }

  /**
   * Do something that asks the API. While it is under way, no button can be pressed. If the page shows
   * another schedule by then, nothing is said of this one.
   */
  async #try(act: () => Promise<void>): Promise<void> {
    if (this.#shown.busy) return;
    const { key } = this;
    const reads = this.#reads;
    this.#show({ busy: true });
    try {
      await act();
    } catch (problem) {
      if (key !== this.key) return;
      if (problem instanceof DuetickError && problem.error === "version_conflict") {
        await this.reload();
        this.#show({ errors: { form: this.#shown.labels.conflict } });
      } else this.#refuse(problem);
    } finally {
      if (reads === this.#reads) this.#show({ busy: false });
    }
  }

  #refuse(problem: unknown): void {
    this.#fail(problem, {});
    this.#focusOnError();
    this.#tell("error", { error: problem });
  }

  /** Show each problem at its field. */
  #fail(problem: unknown, change: Partial<Shown>): void {
    if (!(problem instanceof DuetickError)) throw problem;
    const { labels, draft } = this.#shown;
    const errors: Partial<Record<Field | "timezone" | "form", string>> = {};
    for (const one of problem.problems) {
      const top = one.field.split("/")[1] ?? "";
      const at = top === "cron" ? FIELD[draft.kind] : top === "timezone" ? "timezone" : "form";
      errors[at] = errors[at] ? `${errors[at]} ${one.message}` : one.message;
    }
    if (!problem.problems.length) errors.form = problem.message;
    if (problem.status === 0) errors.form = labels.unreachable;
    if (problem.status === 401) errors.form = labels.signedOut;
    this.#show({ ...change, errors });
  }

  #focusOnError(): void {
    this.#root.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }

  #tell(what: string, detail: object): void {
    this.dispatchEvent(new CustomEvent(`duetick-${what}`, { detail, bubbles: true, composed: true }));
  }

  /** The page's language, as the reader's browser prefers it: British rather than any English. */
  get #language(): string | undefined {
    const lang = this.closest("[lang]")?.getAttribute("lang");
    return lang ? (navigator.languages.find((one) => one.startsWith(lang)) ?? lang) : undefined;
  }

  /** Say a local time as the API tells it: the browser's own rules for zones may be older. */
  #format(local: string): string {
    const options: Intl.DateTimeFormatOptions = { dateStyle: "full", timeStyle: "short", timeZone: "UTC" };
    return new Intl.DateTimeFormat(this.#language, options).format(new Date(`${local.slice(0, 19)}Z`));
  }

  #moment(utc: string): string {
    const options: Intl.DateTimeFormatOptions = { dateStyle: "medium", timeStyle: "short" };
    try {
      const zoned = { ...options, timeZone: this.#shown.timezone };
      return new Intl.DateTimeFormat(this.#language, zoned).format(new Date(utc));
    } catch {
      return new Intl.DateTimeFormat(this.#language, { ...options, timeZone: "UTC" }).format(new Date(utc));
    }
  }
}

/** A form in which nobody has entered anything. */
function fresh(): Omit<Shown, "labels" | "busy"> {
  return {
    draft: EMPTY,
    timezone: ownZone(),
    sought: null,
    preview: null,
    looking: false,
    errors: {},
    schedule: null,
    said: "",
    asksToDelete: false,
    history: null,
  };
}

/** What is said of the whole form stays; fields whose times can be read are in order. */
function formAlone({ form: said }: Shown["errors"]): Shown["errors"] {
  return said ? { form: said } : {};
}

if (!customElements.get("duetick-schedule")) customElements.define("duetick-schedule", DuetickSchedule);
