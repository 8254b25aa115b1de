/**
 * Who waits for whom, drawn from left to right: the rest of the queue, its head, the resource, its holder, and what
 * that holder waits for.
 */
import type { Resource, State } from './types.ts';

export interface GraphNode {
  readonly key: string;
  readonly label: string;
  readonly detail: string;
  readonly kind: 'waiter' | 'head' | 'resource' | 'holder' | 'root';
  readonly column: number;
  readonly row: number;
  /** The name of the resource, if the node is one. */
  readonly resource?: string;
}

export interface GraphEdge {
  readonly from: string;
  readonly to: string;
  readonly label: string;
  readonly isDashed: boolean;
}

export interface Graph {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  readonly columns: number;
  readonly rows: number;
  /** The holder that all of them wait for in the end; undefined if nobody waits. */
  readonly root: string | undefined;
}

const MOST_BEHIND = 6;
const MOST_STEPS = 4;

/** The resource that a holder waits for, if any. */
export function waitedForBy(state: State, holder: string, except: ReadonlySet<string>): Resource | undefined {
  for (const one of state.resources.values()) {
    if (!except.has(one.resource) && one.waiting.some((waiter) => waiter.holder === holder)) return one;
  }
  return undefined;
}

export function graphOf(state: State, start: Resource): Graph {
  const nodes: GraphNode[] = [];
  const edges: GraphEdge[] = [];
  const behind = start.waiting.slice(1, 1 + MOST_BEHIND);
  const more = start.waiting.length - 1 - behind.length;
  const rows = Math.max(1, behind.length + (more > 0 ? 1 : 0), Math.min(start.holds.length, MOST_BEHIND));
  const middle = (rows - 1) / 2;
  const [head] = start.waiting;
  behind.forEach((waiter, row) => {
    const key = `behind ${row}`;
    nodes.push({ key, label: waiter.holder, detail: '', kind: 'waiter', column: 0, row });
    edges.push({ from: key, to: 'head', label: row === behind.length - 1 ? 'waits behind' : '', isDashed: true });
  });
  if (more > 0) {
    const label = `${more} more`;
    nodes.push({ key: 'more', label, detail: '', kind: 'waiter', column: 0, row: behind.length });
    edges.push({ from: 'more', to: 'head', label: '', isDashed: true });
  }
  if (head !== undefined) {
    const detail = 'head of the queue';
    nodes.push({ key: 'head', label: head.holder, detail, kind: 'head', column: 1, row: middle });
    edges.push({ from: 'head', to: start.resource, label: 'waits for', isDashed: false });
  }
  let column = 2;
  let current = start;
  let root: string | undefined;
  const seen = new Set<string>();
  for (let step = 0; step < MOST_STEPS; step++) {
    seen.add(current.resource);
    const { resource, name } = current;
    nodes.push({ key: resource, label: name, detail: '', kind: 'resource', column, row: middle, resource });
    const holders = current.holds.slice(0, MOST_BEHIND);
    const next = holders
      .map(({ holder }) => ({ holder, waits: waitedForBy(state, holder, seen) }))
      .find(({ waits }) => waits !== undefined);
    const from = (rows - holders.length) / 2;
    holders.forEach(({ holder, isStale, token }, place) => {
      const key = `${resource} ${token}`;
      const isOn = holder === next?.holder;
      const kind = isOn || (next !== undefined && !isOn) ? 'holder' : 'root';
      const detail = isStale ? 'lost it' : 'holds';
      nodes.push({ key, label: holder, detail, kind, column: column + 1, row: from + place });
      edges.push({ from: resource, to: key, label: place === holders.length - 1 ? 'held by' : '', isDashed: false });
      if (isOn && next.waits !== undefined) {
        edges.push({ from: key, to: next.waits.resource, label: 'waits for', isDashed: false });
      }
    });
    root = (next ?? holders[0])?.holder;
    if (next?.waits === undefined) break;
    current = next.waits;
    column += 2;
  }
  const first = nodes.reduce((least, node) => Math.min(least, node.column), Infinity);
  const placed = nodes.map((node) => ({ ...node, column: node.column - first }));
  const columns = placed.reduce((most, node) => Math.max(most, node.column), 0) + 1;
  return { nodes: placed, edges, columns, rows, root: start.waiting.length === 0 ? undefined : root };
}
