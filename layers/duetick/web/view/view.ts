/**
 * A view: elements and texts, described anew at each change, and patched into the page.
 *
 * Whatever is shown becomes a text node, or the value of an attribute of this list. There is no way to
 * markup, to script, or to an address of another scheme: hostile texts stay texts.
 */

export type Child = VNode | string | number | null | undefined | false | readonly Child[];
export type Handler<E extends Event = Event> = (event: E) => void;

type Events = {
  [N in keyof GlobalEventHandlersEventMap]?: (event: GlobalEventHandlersEventMap[N]) => void;
};

export interface Props {
  key?: string;
  class?: string;
  on?: Events;
  /** It is set when it changes here, so that nobody who types is interrupted. */
  value?: string;
  checked?: boolean;
  selected?: boolean;
  /** It is called with the element once that is made. */
  made?: (element: HTMLElement | SVGElement) => void;
  [name: `aria-${string}` | `data-${string}`]: string | number | boolean | undefined;
  [name: string]: unknown;
}

interface VNode {
  readonly tag: string;
  readonly props: Props;
  readonly children: VNode[];
  readonly text: string;
  node?: ChildNode;
}

const SVG = "http://www.w3.org/2000/svg";
const OF_SVG: ReadonlySet<string> = new Set(["svg", "path", "line", "rect", "text"]);
const PROPERTIES: ReadonlySet<string> = new Set(["value", "checked", "selected", "indeterminate"]);
const NO_ATTRIBUTES: ReadonlySet<string> = new Set([...PROPERTIES, "key", "on", "made"]);
const ATTRIBUTE = /^(?:aria-[a-z]+|data-[a-z-]+|[a-z]+[0-9]?(?:-[a-z]+)?|viewBox)$/;
const FORBIDDEN = /^(?:on|style$|src|srcdoc$|formaction$|action$)/i;
const LINK = /^(?:#|\/(?!\/)|https:\/\/)/;

/** Describe an element. */
export function h(tag: string, props: Props | null = null, ...children: Child[]): VNode {
  return { tag, props: props ?? {}, children: nodes(children), text: "" };
}

function nodes(children: readonly Child[]): VNode[] {
  const found: VNode[] = [];
  for (const one of children) {
    if (one === null || one === undefined || one === false || one === "") continue;
    if (Array.isArray(one)) found.push(...nodes(one as readonly Child[]));
    else if (typeof one === "object") found.push(one as VNode);
    else found.push({ tag: "", props: {}, children: [], text: String(one) });
  }
  return found;
}

const shown = new WeakMap<Node, VNode[]>();

/** Show children in an element, in place of those that were shown there. */
export function render(root: Element | ShadowRoot, ...children: Child[]): void {
  const next = nodes(children);
  patch(root, shown.get(root) ?? [], next);
  shown.set(root, next);
}

function patch(parent: Node, before: readonly VNode[], next: readonly VNode[]): void {
  const known = new Map(before.map((one, place) => [name(one, place), one]));
  const kept = next.map((one, place) => {
    const old = known.get(name(one, place));
    if (old?.tag !== one.tag) return undefined;
    known.delete(name(one, place));
    return old;
  });
  const stays = new Set(kept);
  for (const one of before) if (!stays.has(one)) one.node?.remove();
  let at = parent.firstChild;
  next.forEach((one, place) => {
    const old = kept[place];
    if (old) update(old, one);
    else one.node = make(one);
    if (one.node === at) at = at?.nextSibling ?? null;
    else if (one.node) parent.insertBefore(one.node, at);
  });
}

function name(one: VNode, place: number): string {
  return one.props.key === undefined ? `${place}` : `#${one.props.key}`;
}

function make(one: VNode): ChildNode {
  if (!one.tag) return document.createTextNode(one.text);
  const element = OF_SVG.has(one.tag)
    ? (document.createElementNS(SVG, one.tag) as SVGElement)
    : document.createElement(one.tag);
  patch(element, [], one.children);
  setProps(element, {}, one.props);
  listen(element, one);
  one.props.made?.(element);
  return element;
}

function update(old: VNode, one: VNode): void {
  const { node } = old;
  if (!node) return;
  one.node = node;
  if (!one.tag) {
    if (old.text !== one.text) (node as Text).data = one.text;
    return;
  }
  const element = node as HTMLElement;
  patch(element, old.children, one.children);
  setProps(element, old.props, one.props);
  listen(element, one);
}

/** What is listened to is asked for at the event, so that no listener is ever taken away. */
const listening = new WeakMap<Node, { events: Events; names: Set<string> }>();

function listen(element: Element, one: VNode): void {
  const events = one.props.on;
  if (!events && !listening.has(element)) return;
  const known = listening.get(element) ?? { events: {}, names: new Set() };
  known.events = events ?? {};
  listening.set(element, known);
  for (const each of Object.keys(known.events)) {
    if (known.names.has(each)) continue;
    known.names.add(each);
    element.addEventListener(each, (event) => {
      const handler = known.events[each as keyof Events] as Handler | undefined;
      handler?.(event);
    });
  }
}

function setProps(element: Element, before: Props, next: Props): void {
  for (const [each, value] of Object.entries(next))
    if (before[each] !== value) setProp(element, each, value);
  for (const each of Object.keys(before)) if (!(each in next)) setProp(element, each, undefined);
}

function setProp(element: Element, each: string, value: unknown): void {
  if (PROPERTIES.has(each)) {
    Object.assign(element, { [each]: value ?? "" });
    return;
  }
  if (NO_ATTRIBUTES.has(each)) return;
  if (!ATTRIBUTE.test(each) || FORBIDDEN.test(each)) throw new TypeError(`no attribute: ${each}`);
  if (value === undefined || value === null || value === false) element.removeAttribute(each);
  else if (each === "href" && !LINK.test(String(value))) element.removeAttribute(each);
  else element.setAttribute(each, value === true ? "" : String(value));
}
