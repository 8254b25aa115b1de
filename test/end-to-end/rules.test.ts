// Rules that bind every holder, and holds by hand in every form, as one would type them.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, Scratch, startProgram } from '../support/cli.ts';

let scratch: Scratch;
beforeAll(() => void (scratch = new Scratch()));
afterAll(() => scratch.remove());

// On a busy machine, a lease of a moment may have ended before its holder hears of it: then it is taken again.

/** What the commands print, on stderr too, and their exit codes where they fail. Every token is told as N. */
async function transcript(script: string): Promise<string> {
  const env = { NODE: process.execPath, CLI, SIGNALBOX_URL: scratch.store };
  const prelude = 'signalbox() { "$NODE" "$CLI" "$@"; local code=$?; [ $code = 0 ] || echo "($code)"; return $code; }';
  const { stdout } = await startProgram('bash', ['-c', `${prelude}\nexec 2>&1\n${script}`], { env }).ended;
  return stdout.replaceAll(/(?<="token":|tokens? )\d+(?:, \d+)*/g, 'N').replaceAll(/ for \d+ m?s(?=\n|,)/g, ' for T');
}

const lines = (...all: readonly string[]): string => `${all.join('\n')}\n`;

describe('from a shell', () => {
  it('a rule binds every holder, and can be seen and removed', async () => {
    const told = await transcript(`
      signalbox lock configure main --max-hold 10m --ttl 20s --on-stale alert
      signalbox lock acquire main --holder a --ttl 1h --max-hold 1h --metadata '{"ticket":"OPS-7"}' --json
      signalbox lock show main --json | grep -o '"metadata":{[^}]*}'
      signalbox lock acquire main --holder b --no-wait
      signalbox lock release main --holder a
      signalbox lock show main
      signalbox lock configure main --max-hold none --ttl none --on-stale reclaim
      signalbox lock configure main --max-hold soon
      signalbox lock configure main`);
    expect(told).toBe(
      lines(
        'lock/main: held for at most 10 min; detached holds are stale after 20 s without a renewal; a person decides about stale holds',
        '{"resource":"lock/main","holder":"a","token":N,"outcome":"acquired","ttlMs":20000,"renewWithinMs":5000,"maxHoldMs":600000,"mode":"exclusive"}',
        '"metadata":{"ticket":"OPS-7"}',
        'signalbox: lock/main: held by a for T',
        '(75)',
        'lock/main: released',
        'lock/main: held for at most 10 min; detached holds are stale after 20 s without a renewal; a person decides about stale holds',
        'lock/main is free.',
        'lock/main: the next in line gets a stale hold',
        'signalbox: --max-hold is "soon"; expected a number of seconds, or a number with a unit: 250ms, 60s, 5m, 1h, 2d; or none, to remove the limit',
        '  see: signalbox lock configure --help',
        '(64)',
        'signalbox: nothing to configure',
        '  use: --max-hold, --ttl or --on-stale',
        '(64)',
      ),
    );
  });

  it('a semaphore is made with its rules, and keeps its capacity', async () => {
    const told = await transcript(`
      signalbox sem configure api --capacity 2 --max-hold 5m --json
      signalbox sem configure api --capacity 3
      signalbox sem show api
      signalbox sem acquire api --holder a --json | grep -o '"maxHoldMs":[0-9]*'
      signalbox sem release api --holder a`);
    expect(told).toBe(
      lines(
        '{"resource":"semaphore/api","maxHoldMs":300000,"ttlMs":null,"onStale":"reclaim"}',
        'signalbox: semaphore/api: the capacity is 2, not 3; change it with resize, or name the same one everywhere',
        '(64)',
        'semaphore/api: held for at most 5 min; the next in line gets a stale hold',
        'semaphore/api: 0 of 2 slots in use, 2 free',
        '"maxHoldMs":300000',
        'semaphore/api: released',
      ),
    );
  });

  it('a reader becomes the writer and a reader again, by hand', async () => {
    const told = await transcript(`
      ONE=$(signalbox lock acquire docs --holder one --shared)
      TWO=$(signalbox lock acquire docs --holder two --shared)
      signalbox lock upgrade docs --holder one --token $ONE --no-wait
      signalbox lock release docs --holder two --token $TWO
      NEW=$(signalbox lock upgrade docs --holder one --token $ONE)
      [ $NEW -gt $ONE ] && echo "a larger token"
      signalbox lock renew docs --holder one --token $ONE
      signalbox lock acquire docs --holder two --shared --no-wait
      signalbox lock downgrade docs --holder one --token $NEW
      signalbox lock acquire docs --holder two --shared --no-wait > /dev/null && echo "both read"
      signalbox lock release docs --holder nobody`);
    expect(told).toBe(
      lines(
        'signalbox: lock/docs: held by two for T',
        '(75)',
        'lock/docs: released',
        'a larger token',
        'signalbox: lock/docs: one does not hold it with token N',
        '(77)',
        'signalbox: lock/docs: held by one for T',
        '(75)',
        'lock/docs: shared from now on',
        'both read',
        'signalbox: lock/docs: nobody does not hold it',
        '(77)',
      ),
    );
  });

  it('a stale hold is stolen where a person has to decide, a live one only by force, with a reason', async () => {
    const told = await transcript(`
      signalbox lock configure prod --on-stale alert > /dev/null
      until signalbox lock acquire prod --holder a --ttl 2s > /dev/null 2>&1; do :; done
      until signalbox lock show prod --json | grep -q '"isStale":true'; do sleep 0.2; done
      signalbox lock acquire prod --holder b --no-wait
      signalbox lock acquire prod --holder b --no-wait --steal-stale > /dev/null && echo "b stole it"
      signalbox lock acquire prod --holder c --no-wait --steal-stale
      signalbox lock acquire prod --holder c --force
      signalbox lock acquire prod --holder c --force --reason 'b is stuck' > /dev/null && echo "c took it"
      signalbox lock acquire prod --holder c --force --steal-stale --reason x`);
    expect(told).toBe(
      lines(
        'signalbox: lock/prod: held by a for T, stale; a person decides: signalbox lock break prod --reason WHY',
        '(75)',
        'b stole it',
        'signalbox: lock/prod: not granted; held by b for T',
        '(75)',
        'signalbox: --force needs --reason: the holder that loses it gets to see why',
        '(64)',
        'c took it',
        'signalbox: --force and --steal-stale exclude each other: --force takes any hold, stale or not',
        '(64)',
      ),
    );
  });

  it('a holder that has a stale hold besides has to say which one it releases', async () => {
    const told = await transcript(`
      signalbox lock configure twice --on-stale alert > /dev/null
      until OLD=$(signalbox lock acquire twice --holder a --shared --ttl 2s 2>/dev/null); do :; done
      until signalbox lock show twice --json | grep -q '"isStale":true'; do sleep 0.2; done
      signalbox lock acquire twice --holder a --shared > /dev/null
      signalbox lock release twice --holder a
      signalbox lock release twice --holder a --token $OLD
      signalbox lock release twice --holder a`);
    expect(told).toBe(
      lines(
        'signalbox: lock/twice: a has 2 holds, with the tokens N; name one with --token',
        '(64)',
        'lock/twice: released',
        'lock/twice: released',
      ),
    );
  });
});
