/** Makes foreign names and texts safe to show: they stay text and cannot change the layout around them. */

/** Control characters, direction marks and line ends. */
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Shows invisible characters by their code, so that two different names look different. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (mark) => `⟨${mark.charCodeAt(0).toString(16).padStart(4, '0')}⟩`);
}

/** Cuts a text after `most` characters, and says how many are left out. */
export function shortened(text: string, most: number): string {
  const characters = text.length <= most ? text : [...text.slice(0, most)].join('');
  const rest = text.length - characters.length;
  return visible(characters) + (rest > 0 ? `… (${rest} more)` : '');
}

/** Splits a name in two: the page cuts the first part where room is short, never the end. */
export function halves(name: string, keep = 8): readonly [string, string] {
  const shown = visible(name.length > 400 ? `${name.slice(0, 200)}…${name.slice(-100)}` : name);
  const characters = [...shown];
  if (characters.length <= keep + 6) return [shown, ''];
  return [characters.slice(0, -keep).join(''), characters.slice(-keep).join('')];
}

/** Cuts the middle out of a name that is longer than `most` characters. */
export function middleCut(name: string, most: number): string {
  const characters = [...visible(name.slice(0, 1000))];
  const half = Math.floor((most - 1) / 2);
  if (characters.length <= most) return characters.join('');
  return `${characters.slice(0, half).join('')}…${characters.slice(-half).join('')}`;
}

/** `lock/main` as kind and name. */
export function kindAndName(resource: string): readonly [string, string] {
  const slash = resource.indexOf('/');
  return [resource.slice(0, Math.max(0, slash)), resource.slice(slash + 1)];
}
