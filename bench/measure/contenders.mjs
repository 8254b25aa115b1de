/**
 * The locks that are compared across processes: how each is taken and given back, as its own documentation shows it.
 * `take(name, signal)` resolves with what gives it back. A name is used in one run only.
 */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export const contenders = {
  /** On a store in a directory: the file that all processes of a machine share. */
  async signalbox({ directory }) {
    const { open } = await import('signalbox');
    const box = await open(`file:${join(directory, 'store')}`);
    return {
      async take(name, signal) {
        const hold = await box.lock(name).acquire({ signal });
        return () => hold.release();
      },
      close: () => box.close(),
    };
  },

  /** With the settings it has by default (a try every 10 ms), but the patience to wait for the end of the run. */
  async 'redis-semaphore'({ redisPort }) {
    const [{ Mutex }, { Redis }] = await Promise.all([import('redis-semaphore'), import('ioredis')]);
    const redis = new Redis(redisPort, '127.0.0.1');
    await redis.ping();
    return {
      async take(name) {
        const mutex = new Mutex(redis, name, { acquireTimeout: 60_000 });
        await mutex.acquire();
        return () => mutex.release();
      },
      close: async () => redis.disconnect(),
    };
  },

  /** One child per acquisition, since it is a command: it says when it is let in, and leaves when its input ends. */
  async flock({ directory }) {
    return {
      async take(name) {
        const child = spawn('flock', [join(directory, `${name}.flock`), 'sh', '-c', 'echo in; read out'], {
          stdio: ['pipe', 'pipe', 'ignore'],
        });
        const gone = new Promise((resolve) => child.once('exit', resolve));
        await new Promise((resolve, reject) => {
          child.once('error', reject);
          child.stdout.once('data', resolve);
        });
        return () => {
          child.stdin.end();
          return gone;
        };
      },
      close: async () => {},
    };
  },

  /** It has no retries by default; with a number of them the waits are its default ones: 1 s, then twice as long. */
  async 'proper-lockfile'({ directory }) {
    const { default: lockfile } = await import('proper-lockfile');
    return {
      async take(name) {
        const file = join(directory, `${name}.txt`);
        writeFileSync(file, '');
        return lockfile.lock(file, { retries: 100 });
      },
      close: async () => {},
    };
  },
};
