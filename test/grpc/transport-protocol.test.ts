// What a connection makes of each thing that a peer may say, with a peer that says it.

import fc from 'fast-check';
import { TestClock } from 'signalbox/testing';
import { describe, expect, it } from 'vitest';
import type { CallFailure } from '../../src/grpc/transport.ts';
import { call, failureOf, listen } from './transport-contract.ts';
import {
  answer,
  BEGIN,
  block,
  FLAG,
  frame,
  headers,
  KIND,
  message,
  numbers,
  PREFACE,
  ScriptedPeer,
  settings,
  turn,
} from './scripted-peer.ts';

const PATH = '/test.Service/Method';
const TRAILERS = { 'grpc-status': '0' };
const INITIAL_WINDOW = 4;

function ask(peer: ScriptedPeer, content: Uint8Array | string = 'question'): Promise<Uint8Array> {
  return call(peer.connection, PATH, Buffer.from(content as string));
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString();
}

function goAway(lastId: number, code: number, why = ''): Buffer {
  return frame(KIND.goAway, 0, 0, Buffer.concat([numbers([lastId, 4], [code, 4]), Buffer.from(why)]));
}

describe('a connection begins', () => {
  it('with the preface and settings that forbid pushes, and is open when the peer has said its own', async () => {
    const peer = new ScriptedPeer();
    const [ours, window] = await peer.heard();
    expect(Buffer.concat(peer.socket.writes).toString('latin1').startsWith(PREFACE)).toBe(true);
    expect(ours).toMatchObject({ kind: KIND.settings, flags: 0, id: 0 });
    expect(ours!.payload.subarray(0, 6)).toEqual(numbers([2, 2], [0, 4]));
    expect(window).toMatchObject({ kind: KIND.window, id: 0 });
    expect(peer.connection.isOpen).toBe(false);
    peer.says(settings());
    expect(peer.isOpen).toBe(true);
    expect(peer.connection.isOpen).toBe(true);
    expect((await peer.heard()).at(-1)).toMatchObject({ kind: KIND.settings, flags: FLAG.ack });
  });

  it('does not begin with a peer that says something else first', () => {
    for (const first of [frame(KIND.ping, 0, 0, Buffer.alloc(8)), frame(KIND.settings, FLAG.ack, 0)]) {
      const peer = new ScriptedPeer();
      peer.says(first);
      expect(peer.closed[0]).toMatchObject({ neverSent: true, status: 14 });
      expect(peer.closed[0]!.message).toContain('a beginning without settings');
    }
  });
});

describe('a call', () => {
  it('is two frames, together with all others of the same turn in one write', async () => {
    const peer = ScriptedPeer.open();
    await peer.heard();
    const before = peer.socket.writes.length;
    const all = [ask(peer, 'one'), ask(peer, 'two'), ask(peer, 'three')];
    const frames = (await peer.heard()).slice(-6);
    expect(peer.socket.writes.length).toBe(before + 1);
    expect(frames.map(({ kind, id, flags }) => [kind, id, flags])).toEqual(
      [1, 3, 5].flatMap((id) => [
        [KIND.headers, id, FLAG.endHeaders],
        [KIND.data, id, FLAG.endStream],
      ]),
    );
    expect(frames[3]!.payload).toEqual(message('two'));
    peer.says(answer(5, 'three!'), answer(1, 'one!'), answer(3, 'two!'));
    expect((await Promise.all(all)).map(text)).toEqual(['one!', 'two!', 'three!']);
  });

  it('keeps the process alive, and nothing else does', async () => {
    const peer = ScriptedPeer.open();
    expect(peer.socket.isReferenced).toBe(false);
    const stream = listen(peer.connection, PATH);
    expect(peer.socket.isReferenced).toBe(false);
    const asked = ask(peer);
    const giveUp = peer.connection.unary({ path: PATH, message: Buffer.alloc(0) }, fail, fail);
    expect(peer.socket.isReferenced).toBe(true);
    peer.says(answer(3, 'answer'));
    await asked;
    expect(peer.socket.isReferenced).toBe(true);
    giveUp();
    expect(peer.socket.isReferenced).toBe(false);
    stream.cancel();
  });

  it('gets the same answer however the network splits it, and whatever is said in between', async () => {
    const content = fc.uint8Array({ maxLength: 600 });
    const place = fc.array(fc.nat(), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(content, content, place, place, async (first, second, frameCuts, chunkCuts) => {
        const peer = ScriptedPeer.open();
        const stream = listen(peer.connection, PATH);
        const asked = ask(peer);
        const inFrames = cut(Buffer.concat([message(first), message(second)]), frameCuts).map((part) =>
          frame(KIND.data, 0, 1, part),
        );
        const bytes = Buffer.concat([
          headers(1, BEGIN),
          headers(3, BEGIN),
          frame(KIND.ping, 0, 0, Buffer.alloc(8)),
          ...inFrames,
          frame(99, 0xff, 12, Buffer.from('unknown')),
          frame(KIND.data, 0, 3, message(second)),
          headers(1, TRAILERS, FLAG.endStream),
          headers(3, TRAILERS, FLAG.endStream),
        ]);
        for (const chunk of cut(bytes, chunkCuts)) peer.says(chunk);
        expect(Buffer.from(await asked)).toEqual(Buffer.from(second));
        expect(stream.messages.map((each) => Buffer.from(each))).toEqual([Buffer.from(first), Buffer.from(second)]);
        expect(await stream.ended).toMatchObject({ status: 0 });
        expect(peer.closed).toEqual([]);
        peer.connection.close();
      }),
    );
  });

  it('understands padding, priorities, headers in pieces and interim answers', async () => {
    const peer = ScriptedPeer.open();
    const asked = ask(peer);
    const fields = block(BEGIN);
    peer.says(
      headers(1, { ':status': '103', link: 'elsewhere' }),
      frame(KIND.headers, FLAG.padded | FLAG.priority, 1, [3, 0, 0, 0, 0, 15, ...fields.subarray(0, 4), 0, 0, 0]),
      frame(KIND.continuation, 0, 1, fields.subarray(4, 5)),
      frame(KIND.continuation, 0, 1),
      frame(KIND.continuation, FLAG.endHeaders, 1, fields.subarray(5)),
      frame(KIND.priority, 0, 1, Buffer.alloc(5)),
      frame(KIND.data, FLAG.padded, 1, [2, ...message('pad').subarray(0, 6), 0, 0]),
      frame(KIND.data, FLAG.padded, 1, [0, ...message('pad').subarray(6)]),
      frame(KIND.data, 0, 1),
      headers(1, TRAILERS, FLAG.endStream),
    );
    expect(text(await asked)).toBe('pad');
  });

  it.each<[string, Buffer[], number, RegExp]>([
    [
      'a status alone',
      [headers(1, { ...BEGIN, 'grpc-status': '5', 'grpc-message': 'no%20such%C3%A9' }, 1)],
      5,
      /^no suché$/,
    ],
    ['a status without words', [headers(1, { ...BEGIN, 'grpc-status': '5' }, 1)], 5, /Method with status "5"/],
    [
      'words that are badly encoded',
      [headers(1, { ...BEGIN, 'grpc-status': '5', 'grpc-message': '5% of%zz%41' }, 1)],
      5,
      /^5% of%zzA$/,
    ],
    ['a status that is none', [headers(1, { ...BEGIN, 'grpc-status': 'fine' }, 1)], 2, /"fine"/],
    [
      'HTTP status 404',
      [headers(1, { ':status': '404', 'content-type': 'text/html' })],
      12,
      /HTTP status 404.*text\/html/,
    ],
    ['HTTP status 503', [headers(1, { ':status': '503' }, 1)], 14, /HTTP status 503/],
    ['a web page', [headers(1, { ':status': '200', 'content-type': 'text/html' })], 2, /text\/html.*not gRPC/],
    ['no status', [headers(1, BEGIN), frame(KIND.data, 1, 1, message('x'))], 13, /without a status/],
    ['no message', [headers(1, BEGIN), headers(1, TRAILERS, 1)], 13, /without an answer/],
    [
      'two messages',
      [headers(1, BEGIN), frame(KIND.data, 0, 1, Buffer.concat([message('a'), message('b')]))],
      13,
      /more than one/,
    ],
    [
      'half a message',
      [headers(1, BEGIN), frame(KIND.data, 0, 1, message('abc').subarray(0, 6)), headers(1, TRAILERS, 1)],
      13,
      /middle of a message/,
    ],
    ['a compressed message', [headers(1, BEGIN), frame(KIND.data, 0, 1, [1, 0, 0, 0, 1, 0])], 13, /compressed/],
    [
      'a message beyond all bounds',
      [headers(1, BEGIN), frame(KIND.data, 0, 1, [0, 0xff, 0xff, 0xff]), frame(KIND.data, 0, 1, [0xff])],
      8,
      /4294967295 bytes/,
    ],
    ['data without headers', [frame(KIND.data, 0, 1, message('x'))], 13, /before any headers/],
    ['trailers that do not end it', [headers(1, BEGIN), headers(1, TRAILERS)], 13, /trailers in the middle/],
    ['a reset', [frame(KIND.reset, 0, 1, numbers([2, 4]))], 13, /INTERNAL_ERROR/],
    ['a reset in the middle', [headers(1, BEGIN), frame(KIND.reset, 0, 1, numbers([8, 4]))], 1, /CANCEL/],
  ])('that is answered with %s fails for that alone, and the connection goes on', async (_, said, status, words) => {
    const peer = ScriptedPeer.open();
    const asked = failureOf(ask(peer));
    peer.says(...said);
    const failure = await asked;
    expect({ status: failure.status, neverSent: failure.neverSent }).toEqual({ status, neverSent: false });
    expect(failure.message).toMatch(words);
    const next = ask(peer);
    // What still comes for the first is for nobody.
    peer.says(headers(1, TRAILERS, FLAG.endStream), frame(KIND.data, 0, 1, message('late')), answer(3, 'next'));
    expect(text(await next)).toBe('next');
  });

  it('that the peer refuses to look at was certainly not applied', async () => {
    const peer = ScriptedPeer.open();
    const asked = failureOf(ask(peer));
    peer.says(frame(KIND.reset, 0, 1, numbers([7, 4])));
    expect(await asked).toMatchObject({ status: 14, neverSent: true });
  });

  it('that is given up is broken off at the peer, and a stream that the peer ended is closed from here too', async () => {
    const peer = ScriptedPeer.open();
    peer.connection.unary({ path: PATH, message: Buffer.alloc(0) }, fail, fail)();
    const stream = listen(peer.connection, PATH);
    peer.says(headers(3, { ...BEGIN, 'grpc-status': '0' }, FLAG.endStream));
    await stream.ended;
    const resets = (await peer.heard()).filter(({ kind }) => kind === KIND.reset);
    expect(resets.map(({ id, payload }) => [id, payload.readUInt32BE()])).toEqual([
      [1, 8],
      [3, 0],
    ]);
  });

  it('waits for its turn if the peer takes only so many at once, and is then certainly not sent', async () => {
    const peer = new ScriptedPeer();
    peer.says(settings([3, 2]));
    const [first, second] = [ask(peer, '1'), ask(peer, '2')];
    const [third, fourth] = [ask(peer, '3'), failureOf(ask(peer, '4'))];
    const giveUp = peer.connection.unary({ path: PATH, message: Buffer.alloc(0) }, fail, fail);
    const asked = async () => (await peer.heard()).filter(({ kind }) => kind === KIND.headers).length;
    expect(await asked()).toBe(2);
    giveUp();
    peer.says(answer(1, 'one'));
    expect(text(await first)).toBe('one');
    expect(await asked()).toBe(3);
    peer.says(frame(KIND.ping, 0, 0, Buffer.alloc(8)));
    const broken = [failureOf(second), failureOf(third)];
    peer.connection.close();
    for (const each of broken) expect(await each).toMatchObject({ neverSent: false });
    expect(await fourth).toMatchObject({ neverSent: true });
    // Of what was never begun, nothing is broken off either.
    expect((await peer.heard()).filter(({ kind }) => kind === KIND.reset)).toEqual([]);
  });

  it('begins when the peer takes more at once', async () => {
    const peer = new ScriptedPeer();
    peer.says(settings([3, 0]));
    const stream = listen(peer.connection, PATH);
    stream.send(Buffer.from('early'));
    const asked = ask(peer);
    expect((await peer.heard()).filter(({ id }) => id > 0)).toEqual([]);
    peer.says(settings([3, 10]));
    const frames = (await peer.heard()).filter(({ id }) => id > 0);
    expect(frames.map(({ kind, id }) => [kind, id])).toEqual([
      [KIND.headers, 1],
      [KIND.data, 1],
      [KIND.headers, 3],
      [KIND.data, 3],
    ]);
    expect(frames[1]!.payload).toEqual(message('early'));
    peer.says(answer(3, 'answer'));
    expect(text(await asked)).toBe('answer');
  });

  it('that was made in the very turn in which the connection broke was never sent', async () => {
    const peer = ScriptedPeer.open();
    const before = failureOf(ask(peer));
    await turn();
    const after = failureOf(ask(peer));
    peer.connection.close();
    expect(await before).toMatchObject({ neverSent: false, status: 14 });
    expect(await after).toMatchObject({ neverSent: true, status: 14 });
    expect((await peer.heard()).filter(({ kind }) => kind === KIND.headers)).toHaveLength(1);
  });

  it('has a header block of several frames if its headers are long', async () => {
    const peer = ScriptedPeer.open();
    const token = 'x'.repeat(40_000);
    const giveUp = peer.connection.unary({ path: PATH, message: Buffer.alloc(0), headers: { token } }, fail, fail);
    const frames = (await peer.heard()).filter(({ id }) => id === 1);
    expect(frames.map(({ kind, flags }) => [kind, flags])).toEqual([
      [KIND.headers, 0],
      [KIND.continuation, 0],
      [KIND.continuation, FLAG.endHeaders],
      [KIND.data, FLAG.endStream],
    ]);
    expect(Buffer.concat(frames.slice(0, 3).map(({ payload }) => payload)).includes(token)).toBe(true);
    // Nobody answers it: later, in the middle of another test, it would be found dead.
    giveUp();
  });
});

describe('what is sent', () => {
  const sentTo = async (peer: ScriptedPeer, id: number): Promise<Buffer> =>
    Buffer.concat(
      (await peer.heard()).filter((each) => each.kind === KIND.data && each.id === id).map(({ payload }) => payload),
    );

  it('is never more than the peer has room for, on the connection and on the stream', async () => {
    const peer = new ScriptedPeer();
    peer.says(settings([INITIAL_WINDOW, 100]));
    const content = Buffer.from('0123456789'.repeat(30));
    const expected = message(content);
    void ask(peer, content).catch(() => undefined);
    expect(await sentTo(peer, 1)).toEqual(expected.subarray(0, 100));
    peer.says(frame(KIND.window, 0, 1, numbers([50, 4])));
    expect(await sentTo(peer, 1)).toEqual(expected.subarray(0, 150));
    // 60 less for each, also for those under way: it is owed 60 before anything more is sent.
    peer.says(settings([INITIAL_WINDOW, 40]), frame(KIND.window, 0, 1, numbers([60, 4])));
    expect(await sentTo(peer, 1)).toEqual(expected.subarray(0, 150));
    peer.says(settings([INITIAL_WINDOW, 41]));
    expect(await sentTo(peer, 1)).toEqual(expected.subarray(0, 151));
    peer.says(settings([INITIAL_WINDOW, 1000]));
    expect(await sentTo(peer, 1)).toEqual(expected);
    expect((await peer.heard()).findLast(({ kind }) => kind === KIND.data)?.flags).toBe(FLAG.endStream);
  });

  it('uses the room that new settings give only after they were answered: before that the peer counts by the old', async () => {
    const peer = new ScriptedPeer();
    peer.says(settings([INITIAL_WINDOW, 10]));
    void ask(peer, 'a long question').catch(() => undefined);
    await peer.heard();
    peer.says(settings([INITIAL_WINDOW, 100]));
    const frames = (await peer.heard()).slice(-2);
    expect(frames.map(({ kind, flags }) => [kind, flags])).toEqual([
      [KIND.settings, FLAG.ack],
      [KIND.data, FLAG.endStream],
    ]);
  });

  it('waits for room on the connection, and then goes out in order', async () => {
    const peer = new ScriptedPeer();
    peer.says(settings([INITIAL_WINDOW, 1_000_000]));
    const [first, second] = [Buffer.alloc(60_000, 'a'), Buffer.alloc(60_000, 'b')];
    void ask(peer, first).catch(() => undefined);
    void ask(peer, second).catch(() => undefined);
    expect((await sentTo(peer, 1)).length).toBe(60_005);
    expect((await sentTo(peer, 3)).length).toBe(65_535 - 60_005);
    peer.says(frame(KIND.window, 0, 0, numbers([1_000_000, 4])));
    expect(await sentTo(peer, 3)).toEqual(message(second));
    for (const { payload } of await peer.heard()) expect(payload.length).toBeLessThanOrEqual(16_384);
  });

  it('of a stream keeps its order, however little room there is', async () => {
    const peer = new ScriptedPeer();
    peer.says(settings([INITIAL_WINDOW, 3]));
    const stream = listen(peer.connection, PATH);
    for (const word of ['one', 'two', 'three']) stream.send(Buffer.from(word));
    for (let times = 0; times < 20; times++) peer.says(frame(KIND.window, 0, 1, numbers([3, 4])));
    const all = Buffer.concat(['one', 'two', 'three'].map(message));
    expect(await sentTo(peer, 1)).toEqual(all);
    stream.send(Buffer.from('four'));
    expect(await sentTo(peer, 1)).toEqual(Buffer.concat([all, message('four')]));
  });

  it('stays as it is for as long as the system has not taken it', async () => {
    const peer = ScriptedPeer.open();
    await turn();
    peer.socket.isStuck = true;
    const words = ['first', 'second', 'third'];
    for (const word of words) {
      void ask(peer, word).catch(() => undefined);
      await turn();
    }
    peer.socket.unstick();
    const sent = (await peer.heard()).filter(({ kind }) => kind === KIND.data).map(({ payload }) => payload);
    expect(sent).toEqual(words.map(message));
  });

  it('is forgotten when it is given up, and the room is for the others', async () => {
    const peer = ScriptedPeer.open();
    const giveUp = peer.connection.unary({ path: PATH, message: Buffer.alloc(100_000) }, fail, fail);
    await turn();
    giveUp();
    void ask(peer, 'small').catch(() => undefined);
    peer.says(frame(KIND.window, 0, 0, numbers([100, 4])));
    expect(await sentTo(peer, 3)).toEqual(message('small'));
    expect((await sentTo(peer, 1)).length).toBe(65_535);
  });
});

describe('what comes', () => {
  it('is made room for again before the peer runs out of it, on the connection and on the stream', async () => {
    const peer = ScriptedPeer.open();
    const stream = listen(peer.connection, PATH);
    peer.says(headers(1, BEGIN));
    // Padding counts too.
    const full = frame(KIND.data, FLAG.padded, 1, [9, ...message(Buffer.alloc(16_369)), ...Buffer.alloc(9)]);
    const granted = 64 * 1024 * 1024;
    for (let sent = 0; sent < granted; sent += 16_384) peer.says(full);
    const updates = (await peer.heard()).filter(({ kind }) => kind === KIND.window).slice(1);
    const sum = (id: number): number =>
      updates.filter((update) => update.id === id).reduce((total, { payload }) => total + payload.readUInt32BE(), 0);
    expect(sum(0)).toBe(granted);
    expect(sum(1)).toBe(granted);
    expect(stream.messages).toHaveLength(4096);
  });

  it('for nobody any more is made room for all the same, or the others would run out of it', async () => {
    const peer = ScriptedPeer.open();
    listen(peer.connection, PATH).cancel();
    const full = frame(KIND.data, 0, 1, Buffer.alloc(16_384));
    const granted = 64 * 1024 * 1024;
    for (let sent = 0; sent < granted; sent += 16_384) peer.says(full);
    const updates = (await peer.heard()).filter(({ kind }) => kind === KIND.window).slice(1);
    expect(updates.every(({ id }) => id === 0)).toBe(true);
    expect(updates.reduce((total, { payload }) => total + payload.readUInt32BE(), 0)).toBe(granted);
  });

  it('is not told to who cancels while it is told, not even what came with it', () => {
    const peer = ScriptedPeer.open();
    const told: string[] = [];
    const stream = peer.connection.stream(
      { path: PATH },
      {
        message: (content) => {
          told.push(text(content));
          stream.cancel();
        },
        ended: fail,
      },
    );
    peer.says(headers(1, BEGIN), frame(KIND.data, 0, 1, Buffer.concat([message('one'), message('two')])));
    peer.says(frame(KIND.data, 0, 1, message('three')), headers(1, TRAILERS, FLAG.endStream));
    expect(told).toEqual(['one']);
  });

  it('as a question is answered with the same words, though not at once', async () => {
    const peer = ScriptedPeer.open();
    peer.says(frame(KIND.ping, FLAG.ack, 0, Buffer.from('someone!')));
    for (const word of ['question', 'another!']) peer.says(frame(KIND.ping, 0, 0, Buffer.from(word)));
    const pings = async () => (await peer.heard()).filter(({ kind }) => kind === KIND.ping);
    expect(await pings()).toEqual([]);
    while ((await pings()).length === 0) await turn();
    expect(await pings()).toMatchObject([
      { flags: FLAG.ack, payload: Buffer.from('question') },
      { flags: FLAG.ack, payload: Buffer.from('another!') },
    ]);
  });

  it('as so many questions that they must mean something is answered at once', async () => {
    const peer = ScriptedPeer.open();
    peer.says(...Array.from({ length: 100 }, (_, index) => frame(KIND.ping, 0, 0, numbers([0, 4], [index, 4]))));
    const pings = (await peer.heard()).filter(({ kind }) => kind === KIND.ping);
    expect(pings.map(({ payload }) => payload.readUInt32BE(4))).toEqual([...Array(100).keys()]);
  });
});

describe('a peer that goes away', () => {
  it('gets no new calls, finishes the running ones, and has not looked at those above its last', async () => {
    const peer = ScriptedPeer.open();
    const [finished, untouched] = [ask(peer), failureOf(ask(peer))];
    const stream = listen(peer.connection, PATH);
    await turn();
    peer.says(goAway(1, 0, 'restart'));
    expect(peer.connection.isOpen).toBe(false);
    expect(peer.closed.map((failure) => failure.message)).toEqual(['etcd.test:2379 goes away (NO_ERROR: restart)']);
    expect(await untouched).toMatchObject({ status: 14, neverSent: true });
    expect(await stream.ended).toMatchObject({ status: 14 });
    expect(await failureOf(ask(peer))).toMatchObject({ neverSent: true });
    expect(peer.socket.destroyed).toBe(false);
    peer.says(answer(1, 'finished'));
    expect(text(await finished)).toBe('finished');
    expect(peer.socket.destroyed).toBe(true);
    await turn();
    expect(peer.closed).toHaveLength(1);
  });

  it('may say so twice, as those do that want to be sure of not missing any', async () => {
    const peer = ScriptedPeer.open();
    const [first, second] = [ask(peer), failureOf(ask(peer))];
    peer.says(goAway(2 ** 31 - 1, 0));
    expect(peer.connection.isOpen).toBe(false);
    peer.says(goAway(1, 0));
    expect(await second).toMatchObject({ neverSent: true });
    peer.says(answer(1, 'first'));
    expect(text(await first)).toBe('first');
    expect(peer.closed).toHaveLength(1);
  });

  it('and then breaks off leaves those unknown that it had begun with', async () => {
    const peer = ScriptedPeer.open();
    const asked = failureOf(ask(peer));
    await turn();
    peer.says(goAway(1, 11, 'too_many_pings'));
    peer.socket.push(null);
    expect(await asked).toMatchObject({ status: 14, neverSent: false });
    expect(peer.closed[0]!.message).toContain('ENHANCE_YOUR_CALM: too_many_pings');
  });

  it('is let go at once if nothing is under way', () => {
    const peer = ScriptedPeer.open();
    peer.says(goAway(0, 0));
    expect(peer.socket.destroyed).toBe(true);
    expect(peer.closed).toHaveLength(1);
  });
});

describe('a connection ends', () => {
  it('when its ids are used up: the last call is still answered', async () => {
    const peer = ScriptedPeer.open({ firstId: 2 ** 31 - 3 });
    const first = ask(peer);
    expect(peer.connection.isOpen).toBe(true);
    const last = ask(peer);
    expect(peer.connection.isOpen).toBe(false);
    expect(peer.closed[0]!.message).toContain('no stream ids left');
    expect(await failureOf(ask(peer))).toMatchObject({ neverSent: true });
    peer.says(answer(2 ** 31 - 3, 'first'), answer(2 ** 31 - 1, 'last'));
    expect((await Promise.all([first, last])).map(text)).toEqual(['first', 'last']);
    expect(peer.socket.destroyed).toBe(true);
  });

  it('when the peer does not answer any more, and not while nobody waits for it', async () => {
    const clock = new TestClock();
    const peer = ScriptedPeer.open({ pingMs: 5000, clock });
    await clock.advance(60_000);
    const asked = failureOf(ask(peer));
    await clock.advance(15_000);
    expect(await asked).toMatchObject({ status: 14, neverSent: false });
    expect((await asked).message).toContain('has not answered for 10000 ms');
    expect((await peer.heard()).filter(({ kind }) => kind === KIND.ping)).toHaveLength(1);
    expect(peer.closed).toHaveLength(1);
  });

  it('not as long as the peer answers, whatever it says', async () => {
    const clock = new TestClock();
    const peer = ScriptedPeer.open({ pingMs: 5000, clock });
    const asked = ask(peer);
    for (let pings = 1; pings <= 5; pings++) {
      await clock.advance(5000);
      expect((await peer.heard()).filter(({ kind }) => kind === KIND.ping)).toHaveLength(pings);
      await clock.advance(4000);
      peer.says(frame(KIND.ping, FLAG.ack, 0, Buffer.alloc(8)));
    }
    peer.says(answer(1, 'at last'));
    expect(text(await asked)).toBe('at last');
    peer.connection.close();
  });

  it('once for everybody, also for those who call again from within', async () => {
    const peer = ScriptedPeer.open();
    const outcomes: string[] = [];
    const again = (failure: CallFailure): void => {
      outcomes.push(`failed ${failure.neverSent}`);
      if (outcomes.length < 3) peer.connection.unary({ path: PATH, message: Buffer.alloc(0) }, fail, again);
      peer.connection.close();
    };
    peer.connection.unary({ path: PATH, message: Buffer.alloc(0) }, fail, again);
    await turn();
    peer.connection.close();
    await turn();
    await turn();
    expect(outcomes).toEqual(['failed false', 'failed true', 'failed true']);
    expect(peer.closed).toHaveLength(1);
  });

  it('when a listener throws: what it had not yet heard would be missing', async () => {
    const peer = ScriptedPeer.open();
    const asked = failureOf(ask(peer));
    peer.connection.stream(
      { path: PATH },
      {
        message: () => {
          throw new Error('a fault of the listener');
        },
        ended: () => undefined,
      },
    );
    await turn();
    const said = [headers(3, BEGIN), frame(KIND.data, 0, 3, message('x')), answer(1, 'lost')];
    expect(() => peer.says(...said)).toThrow('a fault of the listener');
    expect(await asked).toMatchObject({ neverSent: false });
    expect(peer.connection.isOpen).toBe(false);
  });
});

function fail(): void {
  throw new Error('this must not be called');
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
}
