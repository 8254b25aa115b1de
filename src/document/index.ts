export { type Document, MOST_TOLD, type ReadDocument, placed, readDocument, toldAll } from './document.ts';
export type { Place, PlacedProblem } from './place.ts';
export { LARGEST_BYTES } from './text.ts';
