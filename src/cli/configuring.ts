/** `lock configure` and `sem configure`: rules that bind every holder. */
import { type Command, InvalidArgumentError } from './command.ts';
import { type Limits, type OnStale, type Settings, spoken } from '../core/index.ts';
import type { SettingsView } from '../runtime/holds/terms.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import { given, limitArgument } from './arguments.ts';
import { CliExit, EXIT } from './exit-code.ts';
import { withBox } from './store.ts';

interface Configurable {
  readonly resource: string;
  inspect(): Promise<SettingsView>;
}

export interface ConfigureFlags {
  readonly maxHold?: number | 'none';
  readonly ttl?: number | 'none';
  readonly onStale?: OnStale;
  readonly capacity?: number;
}

export type Configure = (
  box: Signalbox,
  name: string,
  settings: Settings,
  flags: ConfigureFlags,
) => Promise<Configurable>;

export const RULES_HELP = `The rules are kept in the store and bind every holder from its next grant on, whatever it asks for: the shorter time
counts. Rules that are not named stay as they are, and a hold that exists keeps its terms.`;

const TTL_PURPOSE = 'detached holds are stale after this time without a renewal; none: as asked';
const ON_STALE: readonly OnStale[] = ['reclaim', 'alert'];

/** Adds the options and the action; the caller has added the argument. */
export function addConfiguring(command: Command, configure: Configure): Command {
  return command
    .option('--max-hold <duration>', 'no hold lasts longer, even if it is renewed; none: no limit', durationOrNone)
    .option('--ttl <duration>', TTL_PURPOSE, durationOrNone)
    .oneOf('--on-stale <what>', 'reclaim: the next in line gets a stale hold; alert: a person decides', ON_STALE)
    .action(async (name: string, flags: ConfigureFlags) => {
      const { maxHold, ttl, onStale, capacity } = flags;
      const settings: Settings = given({ maxHoldMs: limitOf(maxHold), ttlMs: limitOf(ttl), onStale });
      if (Object.keys(settings).length === 0 && capacity === undefined) {
        throw new CliExit(EXIT.usage, 'nothing to configure\n  use: --max-hold, --ttl or --on-stale');
      }
      await withBox(command, async (box) => {
        const one = await configure(box, name, settings, flags);
        const view = await one.inspect();
        const { maxHoldMs, ttlMs, onStale: now } = view;
        const json = { resource: one.resource, maxHoldMs: maxHoldMs ?? null, ttlMs: ttlMs ?? null, onStale: now };
        command.answer(json, `${one.resource}: ${rulesTold(view, given({ maxHoldMs, ttlMs }))}`);
      });
    });
}

/** commander would turn a null into an empty text. */
function limitOf(limit: number | 'none' | undefined): number | null | undefined {
  return limit === 'none' ? null : limit;
}

function durationOrNone(text: string): number | 'none' {
  if (text === 'none') return text;
  try {
    return limitArgument(text);
  } catch (error) {
    throw new InvalidArgumentError(`${(error as Error).message}; or none, to remove the limit`);
  }
}

/** `held for at most 10 min; detached holds are stale after 60 s; a person decides about stale holds`. */
export function rulesTold({ onStale }: { readonly onStale: OnStale }, { maxHoldMs, ttlMs }: Limits): string {
  const rules = [
    ...(maxHoldMs === undefined ? [] : [`held for at most ${spoken(maxHoldMs)}`]),
    ...(ttlMs === undefined ? [] : [`detached holds are stale after ${spoken(ttlMs)} without a renewal`]),
    onStale === 'alert' ? 'a person decides about stale holds' : 'the next in line gets a stale hold',
  ];
  return rules.join('; ');
}

export function hasRules(of: { readonly onStale: OnStale; readonly limits: Limits }): boolean {
  return of.onStale !== 'reclaim' || Object.keys(of.limits).length > 0;
}
