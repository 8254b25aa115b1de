/** Checks that a caller may act for a holder, or take a hold by force. */
import { allows, mayActFor, type Role, tokenHolder } from '../core/index.ts';
import type { Caller } from './operation.ts';
import { Problem } from './problem.ts';

export function refuseForeign(caller: Caller, holder: string | undefined): void {
  if (caller.holders === undefined) return;
  if (holder !== undefined && mayActFor(caller, holder)) return;
  const bound = `this token acts only for ${caller.holders.join(', ')}`;
  const why = holder === undefined ? '; name one of these as the holder' : `, and not for ${holder}`;
  throw new Problem('foreign-holder', bound + why, { allowed: caller.holders });
}

/** `what` needs a role that this caller does not have. */
export function wrongRole({ role }: Caller, needed: Role, what: string): Problem {
  const told = `${what} needs the role ${needed}, and this token is of a ${role}`;
  return new Problem('wrong-role', told, { needed, role });
}

export function refuseUnlessAdministrator(caller: Caller, what: string): void {
  if (allows(caller.role, 'administrator')) return;
  throw wrongRole(caller, 'administrator', what);
}

/** The name that people see for a caller that acts without a holder. */
export function actorOf(caller: Caller, holder: string | undefined): string {
  refuseForeign(caller, holder);
  return holder ?? tokenHolder(caller.name);
}
