/** What the witness enters of the commands of one write: who asked for what, and what became of it. */
import {
  type Answer,
  type Event,
  type Hold,
  type Json,
  type Loss,
  NONE,
  type Origin,
  type Step,
} from '../../core/index.ts';
import { entered, enteredText, type WitnessedCommand } from '../../core/witness/index.ts';
import { randomHex, sha256 } from '../../host/index.ts';
import type { Coordinated } from '../../core/machines.ts';
import type { AnyCommand, AnyOutcome, Ticket } from './pending-command.ts';

/** A command that changed something, with its step and the state before it. */
export interface WitnessedStep {
  readonly command: AnyCommand;
  readonly before: Coordinated;
  readonly step: Step<Coordinated, AnyOutcome>;
}

/** The fields that an entry takes from a command of any kind. */
type Fields = AnyCommand & {
  readonly holder?: string;
  readonly origin?: Origin;
  readonly token?: number;
  readonly mode?: string;
  readonly weight?: number;
  readonly reason?: string;
  readonly metadata?: Json;
  readonly force?: true;
  readonly steal?: true;
  readonly upgrades?: string;
};

type Detail = { [name: string]: Json };

/** Settings that a `configure` or a `resize` gives, as they are. */
const SETTINGS = ['onStale', 'maxHoldMs', 'ttlMs', 'capacity'] as const;

/** `sender`: the process that writes, which acts where nobody else does. */
export function commandsOf(
  kind: string,
  steps: readonly WitnessedStep[],
  at: number,
  sender: string,
): readonly WitnessedCommand[] {
  const commands: WitnessedCommand[] = [];
  for (const { command, before, step } of steps) {
    const { outcome, answers, losses } = step;
    const events = [...step.events];
    const answered = answers.map((answer) => answeredCommand(kind, before, answer, events, at));
    const fields = command as Fields;
    commands.push({
      ...common(kind, fields, outcome, sender),
      ...waited(fields, at),
      events: events.map(({ type }) => type),
      ...detailed({ ...detailOf(fields, outcome, losses), ...warnedOf(events) }),
    });
    commands.push(...answered);
  }
  return commands;
}

/** A request that had waited. Takes its own events out of those of the step. */
function answeredCommand(
  kind: string,
  before: Coordinated,
  { id, outcome }: Answer<unknown>,
  events: Event[],
  at: number,
): WitnessedCommand {
  const request = (before.waiting.find((waiting) => waiting.id === id) ?? { id }) as Ticket & Fields;
  const told = outcome as AnyOutcome;
  const holder = request.holder ?? told.hold?.holder;
  // Finds the event by its token: the holder may have taken over from an earlier hold of its own, which has another event.
  const token = told.hold?.token;
  const own = events.findIndex((event) => event.holder === holder && (token === undefined || event['token'] === token));
  const [event] = own < 0 ? NONE : events.splice(own, 1);
  const asked = { ...request, kind: request.upgrades === undefined ? 'acquire' : 'upgrade', ...(holder && { holder }) };
  return {
    ...common(kind, asked, told, id),
    ...waited(asked, at),
    events: event === undefined ? [] : [event.type],
    ...detailed(detailOf(asked, told, NONE)),
  };
}

function common(
  kind: string,
  { kind: command, holder, id, origin }: Fields,
  { kind: outcome }: AnyOutcome,
  sender: string,
): Pick<WitnessedCommand, 'actor' | 'component' | 'trace' | 'command' | 'outcome'> {
  return {
    actor: enteredText(holder ?? id ?? sender),
    component: originText(origin, 'component') ?? kind,
    ...traced(originText(origin, 'trace')),
    command,
    outcome,
  };
}

/** The origin comes from the ticket of another process: whatever that wrote, the entry must be one that can be entered. */
function originText(origin: Origin | undefined, what: 'component' | 'trace'): string | undefined {
  const text: unknown = origin?.[what];
  return typeof text === 'string' ? enteredText(text) : undefined;
}

function traced(trace: string | undefined): { readonly trace?: string } {
  return trace === undefined ? {} : { trace };
}

/** How long the command waited, if it is one that may wait, and did. */
function waited({ kind, origin }: Fields, at: number): { readonly waitedMs?: number } {
  const isWait = kind === 'acquire' || kind === 'upgrade';
  return isWait && Number.isFinite(origin?.at) ? waitedSince((origin as Origin).at, at) : {};
}

export function waitedSince(askedAt: number, at: number): { readonly waitedMs?: number } {
  const waitedMs = Math.max(0, Math.round(at - askedAt));
  return waitedMs === 0 ? {} : { waitedMs };
}

function detailOf(command: Fields, { hold }: AnyOutcome, losses: readonly Loss[]): Detail {
  const detail: Detail = {};
  if (hold !== undefined) {
    detail['token'] = hold.token;
    const { mode, weight } = hold as Hold & { readonly mode?: string; readonly weight?: number };
    if (mode !== undefined) detail['mode'] = mode;
    if (weight !== undefined) detail['weight'] = weight;
  }
  if (command.force === true) detail['force'] = true;
  if (command.steal === true) detail['steal'] = true;
  if (command.kind === 'configure' || command.kind === 'resize') settings(command, detail);
  said(detail, { ...command, ...(command.origin?.sensitive === true && { sensitive: true }) });
  if (losses.length > 0)
    detail['lost'] = losses.map(({ hold: { holder, token }, why }) => ({ holder: enteredText(holder), token, why }));
  return detail;
}

/** The holders whose holds have gone stale: the process that notices it asks, and is none of them. */
function warnedOf(events: readonly Event[]): Detail {
  const stale = events.filter(({ type }) => type.endsWith(':stale'));
  if (stale.length === 0) return {};
  return { stale: stale.map(({ holder, token }) => ({ holder: enteredText(holder), token: token as number })) };
}

function settings(command: Fields, detail: Detail): void {
  for (const name of SETTINGS) {
    const value = (command as unknown as Record<string, Json | undefined>)[name];
    if (value !== undefined) detail[name] = value;
  }
}

/** Reasons and metadata in full if they are short, otherwise as their hash; with a salt if they are sensitive. */
export function said(
  detail: Detail,
  given: { readonly reason?: string; readonly metadata?: Json; readonly data?: Json; readonly sensitive?: true },
): void {
  const salt = given.sensitive === true ? (): string => randomHex(16) : undefined;
  for (const name of ['reason', 'metadata', 'data'] as const) {
    if (given[name] === undefined) continue;
    const value = entered(given[name], sha256, salt?.());
    if (value !== undefined) detail[name] = value as Json;
  }
}

function detailed(detail: Detail): { readonly detail?: Detail } {
  for (const _name in detail) return { detail };
  return {};
}
