/** What `who` shows besides what is held: the members, their coordinator, and who leads what. */
import { coordinatorOf, type Member, viewOf } from '../../core/index.ts';
import { LEADERS } from '../../runtime/members/lead.ts';
import type { Survey } from '../../runtime/observe/survey/index.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import type { Malformed } from '../../runtime/stored.ts';
import { printable } from '../output.ts';
import type { Layout } from '../table.ts';
import { memberJson, memberLines } from './looking.ts';

export interface Crew {
  readonly members: readonly Member[];
  readonly coordinator: string | null;
}

export async function crewOf(box: Signalbox, onMalformed?: (one: Malformed) => void): Promise<Crew> {
  const members = await box.members.list(onMalformed === undefined ? {} : { onMalformed });
  return { members, coordinator: coordinatorOf(viewOf(0, members)) };
}

/** Fields are only ever added; docs/cli.md lists them. */
export function crewJson(crew: Crew | undefined): object {
  return crew === undefined ? {} : { members: crew.members.map(memberJson), coordinator: crew.coordinator };
}

export function crewLines(crew: Crew | undefined, survey: Pick<Survey, 'locks'>, layout: Layout): readonly string[] {
  const members = crew?.members ?? [];
  const leaders = leaderLines(survey);
  return [
    ...(members.length === 0 ? [] : ['', ...memberLines(members, Date.now(), layout)]),
    ...(leaders.length === 0 ? [] : ['', ...leaders]),
  ];
}

export function leaderLines({ locks }: Pick<Survey, 'locks'>): readonly string[] {
  return locks
    .filter(({ name, holds }) => name.startsWith(LEADERS) && holds.length > 0)
    .map(({ name, holds: [hold] }) => `${name.slice(LEADERS.length)}: led by ${hold?.holder}, epoch ${hold?.token}`)
    .map(printable);
}
