/**
 * The board at an earlier time, rebuilt from the record of the witness: its entries become events, and the events make the
 * board as they do on the live page.
 *
 *     entries, chain by chain ──▶ events in order of time ──▶ those up to 14:32 ──▶ the board at 14:32
 *
 * The record tells who asked for what and what became of it. It does not tell who gave up waiting, why a pipeline was
 * blocked, nor what processes printed; the page says so.
 */
import { applied } from './apply.ts';
import { FORGOTTEN } from './apply-tasks.ts';
import type { Window } from './rates.ts';
import { boardIn, items, type Json, memberIn, object, STATES, textIn, textsIn, wordIn } from './read.ts';
import type { Happening, Member, Phase, Pipeline, Resource, State } from './types.ts';

/** A shorter time between request and grant is the store's own latency, not a wait for another holder. */
const SHORTEST_WAIT_MS = 50;

/** The fields of an entry that are read here. */
export interface RecordedEntry {
  readonly resource: string;
  readonly seq: number;
  readonly time: number;
  readonly commands: readonly Json[];
}

/** The record, made ready for looks at any time in it. */
export interface Travelled {
  /** In order of time, by the clocks of the writers. */
  readonly events: readonly Happening[];
  /** The steps of each pipeline, in order. */
  readonly steps: ReadonlyMap<string, readonly PipelineStep[]>;
  /** The time of the first entry; undefined if there is none. */
  readonly begins: number | undefined;
  /** Resources whose first entries were trimmed, so their earlier holds are unknown. */
  readonly trimmed: readonly string[];
}

interface PipelineStep {
  readonly at: number;
  readonly actor: string;
  readonly command: string;
  readonly detail: Json;
}

export function entriesIn(page: unknown): readonly RecordedEntry[] {
  return items(object(page)['entries']).flatMap((one) => {
    const { resource, seq, time, commands } = object(one);
    if (typeof resource !== 'string' || typeof seq !== 'number' || typeof time !== 'number') return [];
    return [{ resource, seq, time, commands: items(commands).map(object) }];
  });
}

/** `entries` are chain by chain, each in order. */
export function travelled(entries: readonly RecordedEntry[]): Travelled {
  const told: Told[] = [];
  const steps = new Map<string, PipelineStep[]>();
  const trimmed: string[] = [];
  let chain = new Chain('');
  let begins = Infinity;
  for (const { resource, seq, time, commands } of entries) {
    if (resource !== chain.resource) {
      chain = new Chain(resource);
      if (seq > 1) trimmed.push(resource);
    }
    begins = Math.min(begins, time);
    // Clocks differ, but the order of a chain is certain.
    chain.at = Math.max(chain.at, time);
    for (const command of commands) {
      told.push(...chain.events(command));
      if (resource.startsWith('pipeline/')) chain.step(steps, command);
    }
  }
  const events = told
    .sort((one, other) => one.at - other.at)
    .map(({ type, resource, holder, at, ...more }, place): Happening => ({
      ...more,
      ...{ type, resource, holder, at, id: `${place + 1}.0` },
    }));
  return { events, steps, begins: Number.isFinite(begins) ? begins : undefined, trimmed };
}

type Told = Omit<Happening, 'id'> & {
  readonly type: string;
  readonly resource: string;
  readonly holder: string;
  readonly at: number;
};

/** Tracks one resource while its entries are read in order. */
class Chain {
  readonly resource: string;
  at = 0;
  /** The slots of each token: a grant takes the lowest that are free. */
  readonly #slots = new Map<number, readonly number[]>();
  readonly #holders = new Map<string, number>();

  constructor(resource: string) {
    this.resource = resource;
  }

  step(steps: Map<string, PipelineStep[]>, { actor, command, detail }: Json): void {
    const id = this.resource.slice('pipeline/'.length);
    const all = steps.get(id) ?? [];
    steps.set(id, all);
    all.push({ at: this.at, actor: String(actor), command: String(command), detail: object(detail) });
  }

  events(command: Json): readonly Told[] {
    const { actor, waitedMs } = command;
    const detail = object(command['detail']);
    const holder = textIn(actor);
    const names = textsIn(command['events']);
    const common = { resource: this.resource, at: this.at, ...said(detail) };
    const kind = this.resource.slice(0, this.resource.indexOf('/'));
    const lost = items(detail['lost']).map(object);
    const events: Told[] = lost.flatMap(({ holder: who, token, why }) => {
      this.#left(token);
      const type = `${kind}:${why === 'forced' ? 'forced' : why === 'released-elsewhere' ? 'released' : 'reclaimed'}`;
      const by = why === 'forced' ? { by: holder } : {};
      return [{ ...common, ...by, type, holder: String(who), ...(typeof token === 'number' && { token }) }];
    });
    // Entries that do not say whose holds went stale tell nothing about it: their actor is the process that noticed.
    for (const { holder: who, token } of items(detail['stale']).map(object))
      events.push({ ...common, type: `${kind}:stale`, holder: String(who), token: Number(token) });
    const isTold = (type: string): boolean => type.endsWith(':stale') || events.some((event) => event.type === type);
    for (const type of names) {
      if (isTold(type)) continue;
      const token = this.#tokenOf(type, command, detail, holder);
      const more = { ...(token !== undefined && { token }), ...this.#granted(type, token, detail, holder) };
      if (type.endsWith(':acquired') && typeof waitedMs === 'number' && waitedMs >= SHORTEST_WAIT_MS) {
        const { mode, weight } = detail;
        events.push({ ...common, type: `${kind}:queued`, holder, mode, weight, at: this.at - waitedMs, priority: 0 });
      }
      events.push({ ...common, ...more, type, holder: memberOf(this.resource, holder) });
    }
    if (names.length === 0 && typeof detail['capacity'] === 'number') {
      events.push({ ...common, type: 'semaphore:resized', holder, capacity: detail['capacity'] });
    }
    return [...events, ...this.#unannounced(command, detail, holder, common)];
  }

  /** A request that was cancelled too late gave its grant back, and its entry lacks the token. */
  #tokenOf(type: string, command: Json, detail: Json, holder: string): number | undefined {
    if (typeof detail['token'] === 'number') return detail['token'];
    if (!type.endsWith(':released') || command['command'] !== 'cancel') return undefined;
    const [only, ...others] = [...this.#slots.keys()];
    return this.#holders.get(holder) ?? (others.length === 0 ? only : undefined);
  }

  #granted(type: string, token: number | undefined, detail: Json, holder: string): Json {
    if (token === undefined) return {};
    if (!type.endsWith(':acquired')) {
      if (/:(released|forced|reclaimed)$/.test(type)) this.#left(token);
      return {};
    }
    const { weight, mode } = detail;
    const had = this.#slots.get(token) ?? [];
    const taken = new Set([...this.#slots.values()].flat());
    const slots = [...had];
    const wanted = typeof weight === 'number' ? Math.min(weight, 10_000) : 0;
    for (let slot = 0; slots.length < wanted; slot++) if (!taken.has(slot)) slots.push(slot);
    this.#slots.set(token, slots);
    this.#holders.set(holder, token);
    return { mode, weight, slots };
  }

  #left(token: unknown): void {
    if (typeof token !== 'number') return;
    this.#slots.delete(token);
    for (const [holder, held] of this.#holders) if (held === token) this.#holders.delete(holder);
  }

  /** Builds the events that the live stream does not have: a task was forgotten, or another program wrote its keys. */
  #unannounced(command: Json, detail: Json, holder: string, common: Pick<Told, 'resource' | 'at'>): readonly Told[] {
    if (!this.resource.startsWith('task/')) return [];
    const { command: asked, outcome } = command;
    if (asked === 'forget' || outcome === 'deleted-by-others') return [{ ...common, type: FORGOTTEN, holder }];
    if (asked !== 'observed' || outcome !== 'changed-by-others') return [];
    const types: Json = { pending: 'released', running: 'claimed', complete: 'completed', failed: 'failed' };
    const type = types[String(detail['status'])];
    return typeof type === 'string' ? [{ ...common, type: `task:${type}`, holder: String(detail['owner'] ?? '') }] : [];
  }
}

/** Finds the member itself: another process may have recorded that it left. */
function memberOf(resource: string, holder: string): string {
  return resource.startsWith('member/') ? resource.slice('member/'.length) : holder;
}

/** Picks what may be shown of the detail; hashed values may not. */
function said({ reason, capacity, attempt }: Json): Json {
  return {
    ...(typeof reason === 'string' && { reason }),
    ...(typeof capacity === 'number' && { capacity }),
    ...(typeof attempt === 'number' && { attempts: attempt }),
  };
}

/** `live` supplies what the record lacks and what never changes, such as the names of phases. */
export function boardAt({ events, steps, begins }: Travelled, at: number, live: State): State {
  const before = events.slice(0, firstAfter(events, at));
  const empty: State = {
    // The events of the record have numbers of their own, which begin with 1.
    ...boardIn({}),
    ...{ store: live.store, token: live.token, allowsCommands: live.allowsCommands, denials: live.denials },
    countedFrom: begins ?? at,
  };
  const board = applied(empty, before);
  const members = membersAfter(before);
  return {
    ...board,
    resources: new Map([...board.resources].map(([name, one]) => [name, { ...one, ...settingsOf(one, live) }])),
    tasks: new Map([...board.tasks].map(([id, one]) => [id, { ...one, ...termsOf(live.tasks.get(id)) }])),
    pipelines: pipelinesAt(steps, at, live, board),
    ...{ members, coordinator: [...members.keys()].sort()[0] ?? null, unread: new Set() },
  };
}

/** How many events there are in each part of a window. */
export function countsIn(events: readonly Happening[], { from, partMs, parts }: Window): readonly number[] {
  const before = Array.from({ length: parts + 1 }, (_, place) => firstAfter(events, from + place * partMs - 1));
  return before.slice(1).map((upTo, place) => upTo - (before[place] ?? 0));
}

/** How many events happened up to this time. */
export function firstAfter(events: readonly Happening[], at: number): number {
  let [low, high] = [0, events.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((events[middle] as Happening).at <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Takes what the events do not tell from the live state: if no entry names the capacity, the record has no change of it. */
function settingsOf(
  { kind, capacity, resource }: Resource,
  live: State,
): Partial<Pick<Resource, 'capacity' | 'onStale'>> {
  const now = live.resources.get(resource);
  return {
    ...(kind === 'semaphore' && capacity === 0 && { capacity: now?.capacity ?? 0 }),
    ...(now !== undefined && { onStale: now.onStale }),
  };
}

function termsOf(now: State['tasks'] extends ReadonlyMap<string, infer T> ? T | undefined : never): Json {
  if (now === undefined) return {};
  const { capabilities, priority, dependsOn, retries } = now;
  return { capabilities, priority, dependsOn, retries };
}

function membersAfter(events: readonly Happening[]): ReadonlyMap<string, Member> {
  const members = new Map<string, Member>();
  for (const { type, holder, at } of events) {
    if (type === 'member:left') members.delete(holder);
    if (type !== 'member:joined') continue;
    members.set(holder, { ...memberIn({ id: holder }), joinedAt: at });
  }
  return members;
}

function pipelinesAt(steps: Travelled['steps'], at: number, live: State, board: State): ReadonlyMap<string, Pipeline> {
  const found = new Map<string, Pipeline>();
  for (const [id, all] of steps) {
    const past = all.filter((step) => step.at <= at);
    const last = past.at(-1);
    if (last === undefined || last.command === 'forget') continue;
    const state = String(last.detail['state']);
    const known = live.pipelines.get(id);
    const place = Number(last.detail['phase']) || 0;
    const isDuring = last.detail['when'] === 'during';
    const phases = phasesAt(past, known?.phases ?? [], state, place, isDuring);
    const [hold] = board.resources.get(`lock/pipeline:${id}`)?.holds ?? [];
    const isOver = ['done', 'failed', 'cancelled'].includes(state);
    found.set(id, {
      ...{ id, name: known?.name ?? id, phases, phase: phases[place]?.name ?? null },
      state: wordIn(state, STATES),
      blocked: state === 'blocked' ? { on: 'guard', reasons: [], since: last.at, question: null } : null,
      ...{ driver: hold?.holder ?? null, isDriven: hold !== undefined, startedBy: past[0]?.actor ?? '' },
      ...{ startedAt: past[0]?.at ?? null, endedAt: isOver ? last.at : null },
      ...{ isCancelling: last.command === 'cancel', reason: null, revision: 0, readAt: 0 },
    });
  }
  return found;
}

function phasesAt(
  past: readonly PipelineStep[],
  names: readonly Phase[],
  state: string,
  place: number,
  isDuring: boolean,
): readonly Phase[] {
  const length = Math.max(names.length, place + 1);
  return Array.from({ length }, (_, index): Phase => {
    const begun = past.findLast(({ command, detail }) => command === 'begun' && detail['phase'] === index);
    const next = past.find(({ at, detail }) => at >= (begun?.at ?? Infinity) && Number(detail['phase']) > index);
    const isPassed = index < place || state === 'done';
    const endedAt = isPassed ? (next?.at ?? past.at(-1)?.at ?? null) : null;
    const now = state === 'running' ? (isDuring ? 'running' : 'pending') : state;
    return {
      name: names[index]?.name ?? `phase ${index + 1}`,
      state: isPassed ? 'done' : index === place ? now : 'pending',
      ...{ attempt: Number(begun?.detail['attempt']) || 0, startedAt: begun?.at ?? null, endedAt },
    };
  });
}

/** `2026-11-17T14:32:08Z`, in the address. Undefined if it is no time. */
export function timeIn(text: string | undefined): number | undefined {
  const at = text === undefined ? NaN : Date.parse(text);
  return Number.isFinite(at) ? at : undefined;
}

export function timeText(at: number): string {
  return new Date(at).toISOString().replace('.000Z', 'Z');
}
