/**
 * Machines, as network namespaces: each has an address of its own, and a cable to one switch that can be unplugged. Needs root
 * and iproute2.
 */
import { execFileSync, spawnSync } from 'node:child_process';

export class Namespaces {
  readonly #tag: string;
  readonly #size: number;

  private constructor(tag: string, size: number) {
    this.#tag = tag;
    this.#size = size;
  }

  /** Why there can be none here; undefined if there can. */
  static missing(): string | undefined {
    if (process.getuid?.() !== 0) return 'needs root';
    const tried = spawnSync('ip', ['netns', 'add', 'signalbox-probe']);
    if (tried.status !== 0) return 'needs ip netns';
    return spawnSync('ip', ['netns', 'del', 'signalbox-probe']).status === 0 ? undefined : 'needs ip netns';
  }

  static make(size: number): Namespaces {
    const made = new Namespaces(`sbx${process.pid}`, size);
    try {
      const hub = made.#name('hub');
      ip('netns', 'add', hub);
      ip('-n', hub, 'link', 'add', 'switch', 'type', 'bridge');
      ip('-n', hub, 'link', 'set', 'switch', 'up');
      for (let place = 0; place < size; place++) {
        const [name, cable] = [made.#name(String(place)), `cable${place}`];
        ip('netns', 'add', name);
        ip('-n', hub, 'link', 'add', cable, 'type', 'veth', 'peer', 'name', 'net', 'netns', name);
        ip('-n', hub, 'link', 'set', cable, 'master', 'switch');
        ip('-n', hub, 'link', 'set', cable, 'up');
        ip('-n', name, 'addr', 'add', `${made.address(place)}/24`, 'dev', 'net');
        ip('-n', name, 'link', 'set', 'net', 'up');
        ip('-n', name, 'link', 'set', 'lo', 'up');
      }
      return made;
    } catch (error) {
      made.remove();
      throw error;
    }
  }

  address(place: number): string {
    return `10.77.0.${place + 1}`;
  }

  /** Words that start a command on this machine. */
  on(place: number): readonly string[] {
    return ['ip', 'netns', 'exec', this.#name(String(place))];
  }

  unplug(place: number): void {
    ip('-n', this.#name('hub'), 'link', 'set', `cable${place}`, 'down');
  }

  plug(place: number): void {
    ip('-n', this.#name('hub'), 'link', 'set', `cable${place}`, 'up');
  }

  remove(): void {
    for (const name of ['hub', ...Array.from({ length: this.#size }, (_, place) => String(place))]) {
      spawnSync('ip', ['netns', 'del', this.#name(name)]);
    }
  }

  #name(of: string): string {
    return `${this.#tag}-${of}`;
  }
}

function ip(...words: readonly string[]): void {
  execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] });
}
