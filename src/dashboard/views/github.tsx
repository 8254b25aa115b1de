/** Locks on GitHub Issues: listed with the locks of the store, and a page for each. Workers take them on GitHub itself. */
import type { JSX } from 'preact';
import type { Loaded } from '../live/store.ts';
import { type GitHubLock, type GitHubLocks, matchingIssues } from '../model/github.ts';
import { shortened } from '../model/text.ts';
import { clock, count, duration, plural } from '../model/time.ts';
import { address } from '../ui/app.ts';
import { useGitHub } from '../ui/github.ts';
import { At, Blank, Button, CommandLine, Facts, Name, Note, Nothing, Panel, Since } from '../ui/parts.tsx';
import { PageHead } from '../ui/page-head.tsx';
import { SignalSign } from '../ui/signs.tsx';
import { TrackHeads } from '../ui/track.tsx';
import { shellWord } from './lock.tsx';

/** The most issues to list above the locks of the store; the filter shows all. */
const FEW = 8;

interface IssuesProps {
  readonly of: GitHubLocks;
  readonly filter: { readonly text: string; readonly is: string };
  /** Whether nothing else is shown. */
  readonly isAlone: boolean;
}

export function LockedIssues({ of, filter, isAlone }: IssuesProps): JSX.Element {
  const found = matchingIssues(of, filter);
  const shown = isAlone ? found : found.slice(0, FEW);
  return (
    <Panel title="On GitHub" aside={<AsOf of={of} />} class="spaced">
      {of.trouble !== null && <Trouble of={of} />}
      {shown.length > 0 && <TrackHeads name="Issue" beside="Title" time="Renewed" />}
      <div role="list" aria-label="Locks on GitHub">
        {shown.map((one) => (
          <div role="listitem" key={one.issue}>
            <IssueRow of={one} />
          </div>
        ))}
      </div>
      {found.length === 0 && of.locks.length > 0 && (
        <p class="inside soft">None of {plural(of.locks.length, 'locked issue')} matches.</p>
      )}
      {of.locks.length === 0 && of.asOf !== null && (
        <Nothing title="No issue is locked" command="signalbox github run 42 --worker agent:7 -- ./fix.sh">
          A worker has an issue of this repository to itself while it holds its lock. Take one while a command runs:
        </Nothing>
      )}
      {found.length > shown.length && (
        <p class="foot">
          <Button onClick={() => address.filter({ where: 'github' })}>Show all {count(found.length)}</Button>
        </p>
      )}
    </Panel>
  );
}

function AsOf({ of: { repository, asOf, everyMs } }: { of: GitHubLocks }): JSX.Element {
  return (
    <>
      <bdi>{shortened(repository ?? '', 80)}</bdi>
      {asOf === null ? (
        ' · not read yet'
      ) : (
        <>
          {' '}
          · as of <At at={asOf} />, read each {duration(everyMs)}
        </>
      )}
    </>
  );
}

function Trouble({ of: { trouble, asOf } }: { of: GitHubLocks }): JSX.Element {
  return (
    <Note sign="caution" role="status">
      GitHub could not be asked{asOf === null ? '' : `, so this is how it was at ${clock(asOf)}`}:{' '}
      <bdi>{shortened(trouble ?? '', 300)}</bdi>. The locks themselves go on: workers renew them on GitHub.
    </Note>
  );
}

function IssueRow({ of }: { of: GitHubLock }): JSX.Element {
  return (
    <a class="row tracks" href={`#/github/${of.issue}`} data-row={`github/${of.issue}`}>
      <span class="line">
        <SignalSign is={of.isStale ? 'caution' : 'held'} label={of.isStale ? 'not renewed in time' : 'held'} />
        <span class="mono">#{of.issue}</span>
      </span>
      <span class="track line railless">
        <span class={`block line ${of.isStale ? 'lost' : ''}`}>
          <Name of={of.worker} />
          {of.since !== null && <Since at={of.since} />}
        </span>
        <span class="cut soft">{of.title === null ? '' : <Name of={of.title} />}</span>
      </span>
      {of.renewedAt === null ? (
        <span class="right faint">–</span>
      ) : (
        <Since at={of.renewedAt} class={`right ${of.isStale ? 'amber strong' : ''}`} />
      )}
      <span class="right mono faint spare">{count(of.token)}</span>
    </a>
  );
}

export function OneIssue({ snapshot, name }: { snapshot: Loaded; name: string }): JSX.Element {
  const of = useGitHub(snapshot);
  if (of === undefined) return <Blank />;
  const one = of.locks.find(({ issue }) => String(issue) === name);
  const none = of.asOf === null ? (['unknown', 'Not known'] as const) : (['clear', 'Free'] as const);
  const some =
    one?.isStale === true ? (['caution', 'Held, not renewed in time'] as const) : (['held', 'Held'] as const);
  const [sign, word] = one === undefined ? none : some;
  return (
    <>
      <PageHead
        sign={sign}
        label=""
        title={{ kind: 'github', name }}
        under={
          <>
            <span class={one?.isStale === true ? 'amber strong' : ''}>{word}</span>
            {of.repository !== null && [<span class="faint dot">·</span>, <AsOf of={of} />]}
          </>
        }
      />
      {of.repository === null ? (
        <Nothing in="On GitHub" title="This server follows no repository" command="signalbox serve --github owner/name">
          Started like this, it lists the locked issues of a repository:
        </Nothing>
      ) : (
        <>
          {of.trouble !== null && <Trouble of={of} />}
          <div class="grid">
            <Panel class="w6" title="This hold">
              {one !== undefined && <IssueFacts of={one} />}
              {one === undefined && (
                <p class="inside soft">
                  Nobody holds issue #{shortened(name, 20)}, or GitHub has not told this server yet. What was before is
                  on the issue: each worker leaves a comment.
                </p>
              )}
            </Panel>
            <NextSteps of={one} name={name} repository={of.repository} />
          </div>
        </>
      )}
    </>
  );
}

function IssueFacts({ of }: { of: GitHubLock }): JSX.Element {
  return (
    <Facts
      of={[
        of.title !== null && ['Title', shortened(of.title, 300)],
        ['Worker', <Name of={of.worker} />],
        ['Node', of.node === '' ? '–' : <Name of={of.node} />],
        ['Account', of.login === null ? 'none is assigned' : <Name of={of.login} />],
        ['Token', count(of.token), 'mono'],
        of.since !== null && ['Claimed', <At at={of.since} />],
        ['Renewed', of.renewedAt === null ? '–' : [<Since at={of.renewedAt} />, ' ago']],
        ...of.task.map(([what, is]) => [what, shortened(is, 300)] as const),
      ]}
    />
  );
}

interface NextProps {
  readonly of: GitHubLock | undefined;
  readonly name: string;
  readonly repository: string;
}

function NextSteps({ of, name, repository }: NextProps): JSX.Element {
  const at = `--repo ${shellWord(repository)}`;
  const strategy = of?.isStale === true ? ' --strategy steal-stale' : '';
  return (
    <Panel
      class="w6"
      title={of === undefined ? 'Take it' : 'What next'}
      aside="on GitHub itself, not through this server"
    >
      <div class="inside stack">
        {of !== undefined && (
          <p class="soft">
            {of.isStale
              ? 'The holder has not renewed it in time. It keeps the issue until another worker takes it over:'
              : 'The holder renews it on GitHub. The next workers queue on the issue:'}
          </p>
        )}
        {of !== undefined && !of.isStale && (
          <CommandLine>{`signalbox github queue ${shellWord(name)} ${at}`}</CommandLine>
        )}
        {(of === undefined || of.isStale) && (
          <CommandLine>{`signalbox github run ${shellWord(name)} ${at} --worker agent:7${strategy} -- ./fix.sh`}</CommandLine>
        )}
      </div>
    </Panel>
  );
}
