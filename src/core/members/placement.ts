/**
 * Places keys on members by rendezvous hashing: each member gets a score for the key, and the highest wins. When a member
 * comes, it takes only keys that it now owns; when a member goes, only its keys move. Nothing is stored.
 */
import { byId, type ViewMember } from './view.ts';

/** The id of the member that owns the key; null without members. */
export function ownerOf(key: string, members: readonly ViewMember[]): string | null {
  let best: { readonly member: ViewMember; readonly score: number } | undefined;
  for (const member of members) {
    const score = scoreOf(key, member);
    if (best === undefined || score > best.score || (score === best.score && byId(member, best.member) < 0)) {
      best = { member, score };
    }
  }
  return best?.member.id ?? null;
}

/**
 * With the logarithm, a member of weight w wins w out of (sum of all weights) keys, and changing one weight moves keys only to
 * or from that member.
 */
function scoreOf(key: string, { id, weight = 1 }: ViewMember): number {
  return -weight / Math.log(chanceOf(`${key}\0${id}`));
}

/** A number between 0 and 1, both excluded, that is the same on every machine. */
function chanceOf(text: string): number {
  let [high, low] = [0x9e3779b9, 0x85ebca6b];
  for (let place = 0; place < text.length; place++) {
    const unit = text.charCodeAt(place);
    high = Math.imul(high ^ unit, 0x01000193);
    low = Math.imul(low ^ unit, 0x27d4eb2f) ^ (high >>> 15);
  }
  high = mixed(high ^ text.length);
  low = mixed(low ^ high);
  return ((high >>> 0) * 2 ** 20 + (low >>> 12) + 0.5) / 2 ** 52;
}

/** Spreads every bit over the whole word. */
function mixed(word: number): number {
  let bits = word ^ (word >>> 16);
  bits = Math.imul(bits, 0x7feb352d);
  bits = Math.imul(bits ^ (bits >>> 15), 0x846ca68b | 0);
  return bits ^ (bits >>> 16);
}
