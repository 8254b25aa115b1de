/** Ends of claims that a server carries out for other programs, which send them again if they get no answer. */
import type { ClaimName } from '../../core/index.ts';

/** A symbol and not a named field, because only a server repeats an end for another program. */
const REQUEST = Symbol('request');

/** The same claim, for an end that may be sent again under this id. Without an id, each end is another request. */
export function endedBy(request: string | undefined, claim: ClaimName): ClaimName {
  return request === undefined ? claim : Object.assign({ [REQUEST]: request }, claim);
}

export function requestOf(claim: ClaimName): string | undefined {
  return (claim as { readonly [REQUEST]?: string })[REQUEST];
}
