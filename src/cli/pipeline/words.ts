/** Describes a pipeline in words: what it waits for, how its phases ended, and how to continue it. */
import { type Blocked, currentPhase, type PhaseRecord, type PipelineRecord, spoken } from '../../core/index.ts';

/** Every reason on its own line, then what would wake it. `now` is by the driver's clock. */
export function blockedLines(blocked: Blocked, now: number): readonly string[] {
  switch (blocked.on) {
    case 'guard': {
      const reasons = blocked.guards.flatMap(({ id, reasons, outlook }) => {
        const stuck = outlook === 'stuck' ? ' (cannot pass as things stand)' : '';
        return reasons.length === 0 ? [`${id}: not known yet`] : reasons.map((reason) => `${id}: ${reason}${stuck}`);
      });
      return [...reasons, ...wakeLines(blocked)];
    }
    case 'holds':
      return [`waiting for ${blocked.resources.map((told) => told.replace(': ', '; ')).join(', ')}`];
    case 'backoff': {
      const leftMs = blocked.since + blocked.againMs - now;
      return [`${blocked.why}; again ${leftMs > 0 ? `in ${spoken(leftMs)}` : 'now'}`];
    }
    case 'person':
      return [blocked.why];
  }
}

function wakeLines({ wakeOn, polled, pollMs, againMs }: Extract<Blocked, { on: 'guard' }>): readonly string[] {
  const ways = [
    ...(wakeOn.length > 0 ? [`after ${wakeOn.join(', ')}`] : []),
    ...(polled.length > 0
      ? [`${pollMs === undefined ? 'now and then' : `every ${spoken(pollMs)}`} at ${polled.join(', ')}`]
      : []),
    ...(againMs !== undefined ? [`in any case every ${spoken(againMs)}`] : []),
  ];
  return ways.length === 0 ? [] : [`checks again ${ways.join('; ')}`];
}

/**
 * One short line per change: `merge: done after 3 s`. `hasDecided`: the user has just answered the question that the pipeline
 * waits for, so it is not asked again.
 */
export function changesOf(
  before: PipelineRecord | undefined,
  after: PipelineRecord,
  hasDecided = false,
): readonly string[] {
  const name = `pipeline/${after.id}`;
  if (before === undefined && after.state === 'pending') return [`${name}: started`];
  const taken = before === undefined ? [`${name}: driven from here, at ${currentPhase(after) ?? after.state}`] : [];
  const phases = after.phases.flatMap((phase, at) => phaseChanges(before?.phases[at], phase, before === undefined));
  const current = currentPhase(after) ?? '';
  const isAnswered = before === undefined && hasDecided && after.blocked?.on === 'person';
  const blocked = isAnswered ? [] : blockedChanges(before, after, current);
  return [...taken, ...phases, ...blocked, ...endOf(before, after, name)];
}

function phaseChanges(before: PhaseRecord | undefined, after: PhaseRecord, isFirst: boolean): readonly string[] {
  // `status` shows what happened before this process took over.
  if (isFirst) return [];
  const { name, state, runs, ended, warnings = [] } = after;
  const warned = warnings.filter((warning) => before?.warnings?.includes(warning) !== true);
  const lines = warned.map((warning) => `${name}: warning: ${warning}`);
  if (state === 'running' && runs !== before?.runs)
    return [...lines, `${name}: begins${runs > 1 ? ` (run ${runs})` : ''}`];
  if (state === before?.state) return lines;
  if (state === 'done') return [...lines, `${name}: done after ${spoken(lengthOf(after, 0))}`];
  if (state === 'failed') return [...lines, `${name}: failed: ${ended ?? 'a guard'}`];
  if (state === 'skipped' || state === 'cancelled') return [...lines, `${name}: ${state}`];
  return lines;
}

function blockedChanges(before: PipelineRecord | undefined, after: PipelineRecord, phase: string): readonly string[] {
  const { blocked } = after;
  if (blocked !== undefined) {
    if (withoutSince(before?.blocked) === withoutSince(blocked)) return [];
    // An earlier driver wrote that down; this one has not checked anything yet. Only a person's answer is still missing for sure.
    const isOld = before === undefined && blocked.on !== 'person';
    const lines = blockedLines(blocked, blocked.since);
    return lines.map((line, at) => {
      if (at > 0) return `${phase}:   ${isOld ? line.replace(/^checks again /, 'checks at once, and again ') : line}`;
      return `${phase}: ${isOld ? 'was blocked: ' : 'blocked: '}${line}`;
    });
  }
  const isJustFree = before?.blocked !== undefined && after.state === 'running' && after.step.when !== 'during';
  return isJustFree ? [`${phase}: continues`] : [];
}

function withoutSince(blocked: Blocked | undefined): string {
  return JSON.stringify({ ...blocked, since: 0 });
}

function endOf(before: PipelineRecord | undefined, after: PipelineRecord, name: string): readonly string[] {
  const { state, reason, startedAt, endedAt } = after;
  if (endedAt === undefined || before?.endedAt !== undefined) return [];
  const why = reason === undefined || reason === '' ? '' : `: ${reason}`;
  return [`${name}: ${state} after ${spoken(endedAt - startedAt)}${why}`];
}

/** A pipeline that could go on, but has no driver, does not run. */
export function shownState(record: PipelineRecord, isDriven: boolean): string {
  return record.state === 'running' && !isDriven ? 'stopped' : record.state;
}

/** How long it ran, or has run so far. */
export function lengthOf({ startedAt, endedAt }: { startedAt?: number; endedAt?: number }, now: number): number {
  return startedAt === undefined ? 0 : (endedAt ?? now) - startedAt;
}

/** Commands that continue, restart or end a pipeline that no process drives. */
export function howToGoOn({ id, blocked, state, phases, step }: PipelineRecord): readonly string[] {
  const resume = `signalbox pipeline resume ${quoted(id)}`;
  if (state === 'failed') return [`start it again: ${resume} --from ${quoted(phases[step.phase]?.name ?? '')}`];
  const cancel = `or end it for good: signalbox pipeline cancel ${quoted(id)}`;
  if (blocked?.on !== 'person') return [`continue it: ${resume}`, cancel];
  // With the question's number: typed later, the command cannot answer a newer question by mistake.
  const question = `--question ${blocked.question}`;
  return [
    `run the phase again: ${resume} --rerun ${question}`,
    `or treat it as done: ${resume} --skip ${question}`,
    cancel,
  ];
}

/** Quoted for the shell. */
export function quoted(id: string): string {
  return /^[\w.:@%+/-]+$/.test(id) && !id.startsWith('-') ? id : `'${id.replaceAll("'", `'\\''`)}'`;
}
