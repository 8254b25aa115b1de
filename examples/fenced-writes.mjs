// A lock alone cannot stop a program that was suspended while it held it: when it wakes up it goes on, not knowing that
// it has been replaced. What it writes to has to compare fencing tokens.

import assert from 'node:assert/strict';
import { open, workerHolder } from 'signalbox';

/** Remembers the largest token it has seen, and refuses smaller ones. In SQL: UPDATE … WHERE token <= $token. */
class Document {
  text = '';
  #token = 0;

  write(text, token) {
    if (token < this.#token) return `refused: token ${token} is older than ${this.#token}`;
    this.#token = token;
    this.text = text;
    return 'written';
  }
}

const document = new Document();
const box = await open('memory:');
const lock = box.lock('document');

const sleeper = await lock.acquire({ holder: workerHolder('sleeper') });
console.log('sleeper:', document.write('by the sleeper', sleeper.token));

// It stops answering. A person decides not to wait for it, and says why: everyone who asks sees the reason.
const successor = await lock.acquire({
  holder: workerHolder('successor'),
  strategy: 'force',
  reason: 'the sleeper has not answered for an hour',
});
assert(successor.token > sleeper.token);
console.log('successor:', document.write('by the successor', successor.token));

// The sleeper wakes up. It could have asked whether the hold is still its own …
assert.equal(sleeper.isValid, false);
assert.equal(sleeper.lost?.by, workerHolder('successor'));
// … but does not, and writes.
const late = document.write('by the sleeper, late', sleeper.token);
console.log('sleeper:', late);
assert.match(late, /^refused/);
assert.equal(document.text, 'by the successor');

// Its release is an answer, not an error, and does not touch the successor's hold.
assert.deepEqual(await sleeper.release(), { kind: 'already-lost', why: 'forced' });
assert.equal(successor.isValid, true);
await successor.release();
await box.close();
