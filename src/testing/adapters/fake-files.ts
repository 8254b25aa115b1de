/** Files without a disk. A directory exists while something is in it, or if it was made. */
import { posix } from 'node:path';
import type { Files } from '../../adapters/index.ts';
import { namesDirectory } from '../../adapters/files.ts';
import type { InputValues } from '../../core/index.ts';
import { Failure, shown } from '../../failure.ts';
import { Fake } from './fake.ts';

/** Files that exist only in a test. */
export class FakeFiles extends Fake implements Files {
  readonly #texts = new Map<string, string>();
  readonly #directories = new Set<string>(['/']);
  readonly #limitBytes: number;

  /** Paths are relative to a root that is called `/`. */
  constructor(texts: Readonly<Record<string, string>> = {}, limitBytes = 1024 * 1024) {
    super();
    this.#limitBytes = limitBytes;
    for (const [path, text] of Object.entries(texts)) this.write(path, text);
  }

  /** Writes a file. */
  write(path: string, text: string): void {
    const place = placeOf(path);
    this.#texts.set(place, text);
    this.makeDirectory(posix.dirname(place));
  }

  /** Makes a directory. */
  makeDirectory(path: string): void {
    for (let place = placeOf(path); place !== '/'; place = posix.dirname(place)) this.#directories.add(place);
  }

  /** Removes a file or a directory. */
  remove(path: string): void {
    const place = placeOf(path);
    const isWithin = (each: string): boolean => each === place || each.startsWith(`${place}/`);
    for (const each of [...this.#texts.keys()].filter(isWithin)) this.#texts.delete(each);
    for (const each of [...this.#directories].filter(isWithin)) this.#directories.delete(each);
  }

  /** Whether there is such a file. */
  file(path: string, signal?: AbortSignal): Promise<InputValues['file']> {
    return this.answer(['file', path], signal, () => {
      const place = placeOf(path);
      const isFile = this.#texts.has(place) && !namesDirectory(path);
      return { exists: isFile || this.#directories.has(place) };
    });
  }

  /** The text of a file; null if there is none. */
  text(path: string, signal?: AbortSignal): Promise<InputValues['fileText']> {
    return this.answer(['text', path], signal, () => {
      const place = placeOf(path);
      if (this.#directories.has(place)) throw new Failure('invalid', `${shown(path)} is a directory: it has no text`);
      const text = namesDirectory(path) ? undefined : this.#texts.get(place);
      if (text === undefined) return null;
      if (Buffer.byteLength(text) > this.#limitBytes) {
        throw new Failure('unavailable', `${shown(path)} is larger than ${this.#limitBytes} bytes`);
      }
      return { text };
    });
  }
}

function placeOf(path: string): string {
  if (path === '' || path.includes('\0')) throw new Failure('invalid', `${shown(path)} is no path`);
  const isOutside = !posix.isAbsolute(path) && /^\.\.($|\/)/.test(posix.normalize(path));
  if (isOutside) throw new Failure('invalid', `${shown(path)} leads out of the root`);
  return posix.resolve('/', path);
}
