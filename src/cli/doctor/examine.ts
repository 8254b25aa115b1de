/** Runs all checks in order. If a check fails, the checks that depend on it are left out. */
import type { Command } from '../command.ts';
import { pause, systemClock } from '../../clock.ts';
import { Failure } from '../../failure.ts';
import type { Malformed } from '../../runtime/stored.ts';
import { parseFileUrl, storeUrl } from '../../runtime/location/location.ts';
import { isReadOnly } from '../../store/embedded/index.ts';
import { isEtcdUrl, withoutPassword } from '../../store/index.ts';
import { EXIT, exitCodeOf } from '../exit-code.ts';
import { isReadOnlyStore, openToLook } from '../read-only.ts';
import { closing, openBox } from '../store.ts';
import { etcdAdvice, etcdServer, serverStatus } from './etcd-checks.ts';
import { access, database, type DatabaseFacts, databaseFacts, fileSystem, sqliteAdvice } from './file-checks.ts';
import { fail, type Finding, ok } from './finding.ts';
import { clocks, disk, inotify, readClocks, readInotify, versions } from './host-checks.ts';
import { history, keys, leases, staleHolds, wakes, witness, writable } from './store-checks.ts';

export interface Examination {
  readonly store: string;
  readonly findings: readonly Finding[];
  readonly exitCode: number;
}

/** Long enough for a wrong clock to show. */
const BETWEEN_READINGS_MS = 100;

export async function examine(command: Command): Promise<Examination> {
  const before = readClocks(systemClock);
  const url = storeUrl(command.store);
  const findings: Finding[] = [];
  const failure = await examineStore(command, url, findings);
  const isRefused = failure?.code === 'forbidden';
  const facts = url.startsWith('file:') ? examineFile(parseFileUrl(url).directory, findings, isRefused) : undefined;
  // Only file stores use inotify.
  const instances = isEtcdUrl(url) ? undefined : readInotify();
  if (instances !== undefined) findings.push(inotify(instances));
  await pause(BETWEEN_READINGS_MS);
  findings.push(clocks(before, readClocks(systemClock)), versions(facts?.sqlite));
  const isHealthy = findings.every(({ verdict }) => verdict !== 'fail');
  const exitCode = failure === undefined ? (isHealthy ? EXIT.ok : EXIT.no) : exitCodeFor(failure);
  return { store: withoutPassword(url), findings, exitCode };
}

/** A store that is damaged is a finding; one that cannot be looked at is not. */
function exitCodeFor(failure: Failure): number {
  const exitCode = exitCodeOf(failure);
  return exitCode === EXIT.unreachable || exitCode === EXIT.notPermitted ? exitCode : EXIT.no;
}

/** Returns the failure if the store cannot be used at all. */
async function examineStore(command: Command, url: string, findings: Finding[]): Promise<Failure | undefined> {
  try {
    if (isReadOnlyStore(url)) return await examineCopy(url, findings);
    const begun = systemClock.monotonic();
    const box = await openBox(command);
    const took = systemClock.monotonic() - begun;
    const other = await openBox(command);
    try {
      findings.push(ok('store', `${withoutPassword(url)} answers (opened in ${took.toFixed(0)} ms)`));
      const status = await serverStatus(url);
      if (status !== undefined) findings.push(etcdServer(status));
      const probe = await box.probe(other);
      const survey = await box.survey();
      const malformed = [...survey.malformed];
      const onMalformed = (one: Malformed): void => void malformed.push(one);
      await box.members.list({ onMalformed });
      await box.pipelines.list({ onMalformed });
      const kept = history(await box.health(), isEtcdUrl(url));
      findings.push(writable(probe), wakes(probe), kept, keys(malformed), staleHolds(survey), leases(survey));
      if (await box.witness.isOn()) findings.push(witness(await box.witness.size()));
    } finally {
      await other.close();
      await box.close();
    }
  } catch (error) {
    if (!Failure.is(error)) throw error;
    const isOpen = findings.length > 0;
    const special = isEtcdUrl(url) ? etcdAdvice(error.code) : sqliteAdvice(error);
    const advice = special ?? adviceFor(error);
    findings.push(fail(isOpen ? 'write' : 'store', error.message, advice));
    if (error.code === 'invalid') throw error;
    return error;
  }
  return undefined;
}

/** Of a store that can only be read from here: looks, and says what does not work. */
async function examineCopy(url: string, findings: Finding[]): Promise<undefined> {
  return closing(await openToLook(url), async (box) => {
    findings.push(ok('store', `${withoutPassword(url)} can be read`));
    const advice =
      'who, status, list and show work; to take locks, use a place that you may write, signalbox serve or signalbox mcp';
    findings.push(fail('write', 'the store cannot be written from here', advice));
    const survey = await box.survey();
    const kept = history(await box.health(), false);
    findings.push(kept, keys(survey.malformed), staleHolds(survey), leases(survey));
    return undefined;
  });
}

function examineFile(directory: string, findings: Finding[], isRefused: boolean): DatabaseFacts | undefined {
  try {
    const who = access(directory);
    findings.push(...(who === undefined ? [] : [who]), fileSystem(directory), disk(directory));
    // A store that signalbox refuses to open must not be opened in another way, and a store that it cannot write must not be
    // opened for writing.
    if (isRefused || isReadOnly(directory)) return undefined;
    const facts = databaseFacts(directory);
    if (facts !== undefined) findings.push(database(facts));
    return facts;
  } catch (error) {
    // The line about the store has said it.
    if (sqliteAdvice(error) !== undefined) return undefined;
    findings.push(fail('database', (error as Error).message, 'see the line about the store'));
    return undefined;
  }
}

function adviceFor({ code }: Failure): string {
  switch (code) {
    case 'corrupt':
      return 'nothing was changed; restore the file from a copy, or move it away to start with an empty store';
    case 'inconsistent':
      return 'nothing was changed; please report it with the steps that led here, then break the lock or semaphore that it names';
    case 'forbidden':
      return 'name a store of your own with --store or SIGNALBOX_URL; the line about access says more';
    case 'unavailable':
    case 'outcome-unknown':
    case 'compacted':
    case 'not-found':
    case 'closed':
    case 'invalid':
    case 'not-acquired':
    case 'hold-lost':
      return 'find out what keeps the store busy, and try again';
  }
}
