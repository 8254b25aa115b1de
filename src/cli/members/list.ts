/** `signalbox members list` and `members watch`. */
import type { Command } from '../command.ts';
import { coordinatorOf, type Member, spoken, topologyOf, type ViewChange, viewOf } from '../../core/index.ts';
import { type Crew, memberJson } from '../../json/member.ts';
import { LEADERS } from '../../runtime/members/lead.ts';
import type { Survey } from '../../runtime/observe/survey/index.ts';
import { countArgument, type FollowFlags, following, timeOf } from '../events.ts';
import { printList } from '../listing.ts';
import { paintFor, plural, printable, screen, tell } from '../output.ts';
import { type Layout, tableLines } from '../table.ts';

export function list(command: Command): void {
  command
    .about(`list the live members, what they own, and which one coordinates

Examples:
  signalbox members list
  signalbox members list --names
  signalbox members list --json | jq -r .coordinator`)
    .option('--names', 'print only the ids, one per line')
    .action(async ({ names }: { names?: true }) => {
      await printList(command, {
        names,
        look: (box, onMalformed) => box.members.list({ onMalformed }),
        all: (found) => found,
        name: ({ id }) => id,
        json: (found, malformed) => ({ members: found.map(memberJson), coordinator: first(found), malformed }),
        nothing: 'There are no members.',
        lines: (found, layout) => memberLines(found, Date.now(), layout),
      });
    });
}

export function watch(command: Command): void {
  command
    .about(`print the view, then each change: who joined, who left, who coordinates

Examples:
  signalbox members watch
  signalbox members watch -n 1
  signalbox members watch --json | jq -c '.left'

With --json, every line is a topology with the names of those who joined and left. A line with "isResync" says that
views were skipped, because the store has forgotten them.`)
    .option('-n, --count <number>', 'stop after this many changes', countArgument)
    .duration('--for', 'stop after this time')
    .action((flags: FollowFlags) =>
      following(command, flags, async (box, signal) => {
        const members = await box.members.follow();
        const changes = members.changes({ signal });
        const show = (change: ViewChange<Member>): void => {
          command.answer(changeJson(change), () => changeLine(change, Date.now()));
        };
        tell('signalbox: waiting for changes; Ctrl-C stops');
        show({ view: members.view(), joined: [], left: [], changed: [], isResync: false });
        let left = flags.count ?? Number.POSITIVE_INFINITY;
        for await (const change of changes) {
          show(change);
          left -= 1;
          if (left <= 0) return;
        }
      }),
    );
}

function changeJson({ view, joined, left, changed, isResync }: ViewChange<Member>): object {
  const names = (members: readonly Member[]): readonly string[] => members.map(({ id }) => id);
  return { ...topologyOf(view), joined: names(joined), left: names(left), changed: names(changed), isResync };
}

/** Also what `who` shows of the members. */
export function memberLines(members: readonly Member[], now: number, layout: Layout): readonly string[] {
  const coordinator = first(members);
  const rows = members.map(({ id, joinedAt, assets }) => ({
    cells: [
      id,
      spoken(Math.max(0, now - joinedAt)),
      id === coordinator ? 'coordinator' : '',
      assets.map((asset) => asset.id).join(', '),
    ],
  }));
  return tableLines(['MEMBER', 'FOR', 'ROLE', 'ASSETS'], rows, layout);
}

/** What `who` shows below the holds: the members, their coordinator, and who leads what. */
export function whoMemberLines(crew: Crew | undefined, survey: Survey, layout: Layout): readonly string[] {
  const members = crew?.members ?? [];
  const leaders = leaderLines(survey);
  return [
    ...(members.length === 0 ? [] : ['', ...memberLines(members, Date.now(), layout)]),
    ...(leaders.length === 0 ? [] : ['', ...leaders]),
  ];
}

export function leaderLines({ locks }: Survey): readonly string[] {
  return locks
    .filter(({ name, holds }) => name.startsWith(LEADERS) && holds.length > 0)
    .map(({ name, holds: [hold] }) => `${name.slice(LEADERS.length)}: led by ${hold?.holder}, epoch ${hold?.token}`)
    .map(printable);
}

function changeLine({ view, joined, left, changed, isResync }: ViewChange<Member>, now: number): string {
  const paint = paintFor(screen());
  const words = [
    ...(isResync ? [paint('yellow', 'some views were skipped')] : []),
    ...joined.map(({ id }) => `+${printable(id)}`),
    ...left.map(({ id }) => `-${printable(id)}`),
    ...changed.map(({ id }) => `~${printable(id)}`),
  ];
  const coordinator = coordinatorOf(view);
  const who = coordinator === null ? 'no coordinator' : `coordinator ${printable(coordinator)}`;
  const told = words.length === 0 ? '' : `${words.join(' ')}  `;
  return `${timeOf(now)}  ${told}${paint('dim', `view ${view.version}: ${plural(view.members.length, 'member')}, ${who}`)}`;
}

function first(members: readonly Member[]): string | null {
  return coordinatorOf(viewOf(0, members));
}
