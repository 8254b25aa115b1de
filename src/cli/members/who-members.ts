/** What `who` shows below the holds: the members, their coordinator, and who leads what. */
import { LEADERS } from '../../runtime/members/lead.ts';
import type { Survey } from '../../runtime/observe/survey/index.ts';
import { printable } from '../output.ts';
import type { Layout } from '../table.ts';
import type { Crew } from '../../json/member.ts';
import { memberLines } from './list.ts';

export function whoMemberLines(
  crew: Crew | undefined,
  survey: Pick<Survey, 'locks'>,
  layout: Layout,
): readonly string[] {
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
