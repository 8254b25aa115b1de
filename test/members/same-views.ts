/** What must be true of the views that the processes of a cluster saw; gives a sentence for everything that is not. */
import type { ClusterProcess, SeenView } from 'signalbox/testing';

type Seen = Pick<ClusterProcess, 'id' | 'reports'>;

export function viewFaults(processes: readonly Seen[]): readonly string[] {
  const runs = processes.flatMap(runsOf);
  const all = new Map<number, string>();
  const faults: string[] = [];
  for (const { who, views } of runs) {
    for (const { version, ids, coordinator, assets } of views) {
      const told = JSON.stringify({ ids, coordinator, assets });
      const other = all.get(version) ?? told;
      if (other !== told) faults.push(`${who} saw ${told} as version ${version}, another saw ${other}`);
      all.set(version, told);
    }
  }
  const versions = [...all.keys()].sort((one, other) => one - other);
  for (const { who, first, views } of runs) faults.push(...faultsOfRun(who, first, views, versions));
  return faults;
}

interface Run {
  readonly who: string;
  /** The members when it began to follow them. */
  readonly first: { readonly version: number; readonly ids: readonly string[] };
  readonly views: readonly SeenView[];
}

/** A process that was restarted begins anew. */
function runsOf({ id, reports }: Seen): readonly Run[] {
  const runs: (Run & { views: SeenView[] })[] = [];
  for (const report of reports) {
    if (report.kind === 'ready') runs.push({ who: `${id} (start ${runs.length + 1})`, first: report, views: [] });
    if (report.kind === 'view') runs.at(-1)?.views.push(report);
  }
  return runs;
}

function faultsOfRun(who: string, first: Run['first'], views: readonly SeenView[], all: readonly number[]): string[] {
  const faults: string[] = [];
  let before = first;
  for (const view of views) {
    const { version, ids, joined, left, coordinator, assets, isResync } = view;
    if (version <= before.version) faults.push(`${who} saw ${version} after ${before.version}`);
    const skipped = all.filter((other) => other > before.version && other < version);
    if (skipped.length > 0 && !isResync) faults.push(`${who} skipped ${skipped.join()} without a word`);
    const stayed = before.ids.filter((id) => !left.includes(id));
    if ([...stayed, ...joined].sort().join() !== ids.join()) {
      faults.push(`${who}: ${before.ids.join()} without ${left.join()} and with ${joined.join()} is not ${ids.join()}`);
    }
    if (coordinator !== ([...ids].sort()[0] ?? null)) faults.push(`${who}: ${coordinator} coordinates ${ids.join()}`);
    for (const asset of assets) {
      const owner = asset.slice(0, asset.indexOf(':'));
      if (!ids.includes(owner)) faults.push(`${who}: ${asset} is there, and its member is not`);
    }
    before = view;
  }
  return faults;
}
