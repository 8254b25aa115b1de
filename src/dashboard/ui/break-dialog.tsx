/**
 * Asks before a lock is broken: who loses what, who gets it with which token, that it is recorded. The request carries the
 * token that was typed, so that a lock that changed hands meanwhile stays as it is.
 */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Refused, send } from '../live/api.ts';
import type { Snapshot } from '../live/store.ts';
import { visible } from '../model/text.ts';
import { count, duration } from '../model/time.ts';
import type { Resource } from '../model/types.ts';
import { say, show, whyNot } from './app.ts';
import { Dialog } from './overlay.tsx';
import { Name, Since } from './parts.tsx';
import { SignalSign } from './signs.tsx';

function newest(of: Resource): number {
  return Math.max(0, ...of.holds.map(({ token }) => token));
}

export function BreakDialog({ snapshot, resource }: { snapshot: Snapshot; resource: string }): JSX.Element {
  const of = snapshot.state?.resources.get(resource);
  // What the dialog was opened for; what is held now may be something else.
  const [meant] = useState(of === undefined ? 0 : newest(of));
  const [reason, setReason] = useState('');
  const [typed, setTyped] = useState('');
  const [trouble, setTrouble] = useState('');
  const [isSent, setSent] = useState(false);
  const now = of === undefined ? 0 : newest(of);
  const hasChanged = now !== meant;
  const not = whyNot(snapshot, 'administrator');
  const isReady = not === undefined && reason.trim() !== '' && typed.trim() === String(meant) && !hasChanged && !isSent;
  const path = `/v1/${resource.slice(0, resource.indexOf('/'))}s/${encodeURIComponent(resource.slice(resource.indexOf('/') + 1))}/break`;
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!isReady) return;
    setSent(true);
    setTrouble('');
    try {
      await send('POST', path, { reason: reason.trim(), token: meant });
      show({ kind: 'none' });
      say(`${resource} was broken`);
    } catch (error) {
      setSent(false);
      setTrouble(
        error instanceof Refused ? error.message : `nothing is known to have happened: ${(error as Error).message}`,
      );
    }
  };
  return (
    <Dialog title={`Break ${resource}?`}>
      <form class="body" onSubmit={(event) => void submit(event)}>
        <h2>
          Break <bdi>{visible(resource)}</bdi>?
        </h2>
        {of !== undefined && !hasChanged && <Consequences of={of} />}
        {hasChanged && (
          <p class="trouble" role="alert">
            It has changed hands since you opened this: token {count(meant)} is over
            {now === 0 ? ', and it is free now.' : `, and token ${count(now)} is held now.`} Nothing was broken.
          </p>
        )}
        <label>
          Reason
          <input
            data-first
            class="field"
            type="text"
            name="reason"
            autocomplete="off"
            placeholder="Those who lose it get to see it"
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        </label>
        <label>
          Type the token you expect to break <span class="soft">(now {count(meant)})</span>
          <input
            class="field short mono"
            type="text"
            inputMode="numeric"
            name="token"
            autocomplete="off"
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <p class="soft">
          If the lock changes hands before you confirm, the token no longer matches and nothing happens.
        </p>
        {trouble !== '' && (
          <p class="trouble" role="alert">
            {visible(trouble)}
          </p>
        )}
        {not !== undefined && <p class="trouble">{not}.</p>}
        <div class="answers">
          <button type="button" class="button" onClick={() => show({ kind: 'none' })}>
            Keep it <kbd>Esc</kbd>
          </button>
          <button type="submit" class="button do" disabled={!isReady}>
            Break token {count(meant)}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Consequences({ of }: { of: Resource }): JSX.Element {
  const [next, ...others] = of.waiting;
  const first = of.holds[0];
  const isLost = of.holds.some(({ isStale }) => isStale);
  return (
    <ul class="will">
      {of.holds.slice(0, 5).map((hold) => (
        <li key={hold.token}>
          <SignalSign is="danger" label="" />
          <span>
            <b class="strong">
              <Name of={hold.holder} />
            </b>{' '}
            loses the hold it has had for <Since at={hold.acquiredAt} />.{' '}
            {isLost
              ? 'Its lease has ended; if its command still runs, signalbox cannot stop it from here.'
              : 'If it runs under signalbox run, its command is stopped.'}
          </span>
        </li>
      ))}
      {of.holds.length > 5 && <li>and {count(of.holds.length - 5)} more readers lose it</li>}
      <li>
        <SignalSign is={next === undefined ? 'clear' : 'held'} label="" />
        {next === undefined ? (
          <span>Nobody waits: it is free afterwards.</span>
        ) : (
          <span>
            <b class="strong">
              <Name of={next.holder} />
            </b>{' '}
            gets it at once, with token {count(of.token + 1)}.
            {others.length > 0 &&
              ` ${count(others.length)} more ${others.length === 1 ? 'stays' : 'stay'} in the queue.`}
          </span>
        )}
      </li>
      <li>
        <SignalSign is="clear" label="" />
        <span>
          An event records the break, your token’s name and your reason; so does the witness, where it is on.
          {first?.maxHoldMs !== null &&
            first?.maxHoldMs !== undefined &&
            ` Left alone, the hold would end ${duration(first.maxHoldMs)} after it began.`}
        </span>
      </li>
    </ul>
  );
}
