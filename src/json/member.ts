/** Members as JSON, on the command line and over HTTP. */
import { coordinatorOf, type Member, viewOf } from '../core/index.ts';
import type { Signalbox } from '../runtime/signalbox.ts';
import type { Malformed } from '../runtime/stored.ts';
import { msOf, time } from './time.ts';

/** Fields are only ever added; docs/cli.md lists them. */
export function memberJson({ id, metadata, incarnation, joinedAt, weight, assets }: Member): object {
  return { id, metadata: metadata ?? null, incarnation, joinedAt: time(joinedAt), weight, assets };
}

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

export type MemberJson = Omit<Member, 'joinedAt' | 'metadata'> & {
  readonly joinedAt: string;
  readonly metadata: Member['metadata'] | null;
};

/** The member from which `memberJson` made this. */
export function memberFrom({ joinedAt, metadata, ...rest }: MemberJson): Member {
  return { ...rest, joinedAt: msOf(joinedAt) as number, ...(metadata !== null && { metadata }) } as Member;
}
