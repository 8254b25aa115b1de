/** Asks before an action is done: break, cancel, resume, retry, resize. Shows what will happen to whom, as things are now. */
import type { ComponentChildren, JSX } from 'preact';
import { useState } from 'preact/hooks';
import { Refused, send } from '../live/api.ts';
import type { Snapshot } from '../live/store.ts';
import { routeOf } from '../model/needs.ts';
import { visible } from '../model/text.ts';
import { count } from '../model/time.ts';
import { type AskedDeed, currentOverlay, say, show, whyNot } from './app.ts';
import { Dialog } from './overlay.tsx';
import { Button } from './parts.tsx';
import { SignalSign } from './signs.tsx';

export function DeedDialog({ snapshot, deed }: { snapshot: Snapshot; deed: AskedDeed }): JSX.Element {
  const { title, token, number, needsReason = false } = deed;
  const [reason, setReason] = useState('');
  const [typed, setTyped] = useState(number === undefined ? '' : String(number.now));
  const [typedToken, setTypedToken] = useState('');
  const [trouble, setTrouble] = useState('');
  const [isSent, setSent] = useState(false);
  const not = whyNot(snapshot, deed.role ?? 'administrator');
  const hasReason = !needsReason || reason.trim() !== '';
  const hasNumber = number === undefined || /^[1-9]\d{0,8}$/.test(typed.trim());
  const hasToken = token === undefined || typedToken.trim() === String(token.meant);
  const change = deed.changed?.(snapshot);
  const isReady = not === undefined && change === undefined && hasReason && hasNumber && hasToken && !isSent;
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (!isReady) return;
    setSent(true);
    setTrouble('');
    // The reader may have closed the dialog before the answer comes, and opened another.
    const isOpen = isStillOpen();
    try {
      const answer = await send(deed.method ?? 'POST', `/v1${routeOf(deed.resource)}/${deed.action}`, {
        ...deed.body,
        ...(needsReason && { reason: reason.trim() }),
        ...(number !== undefined && { [number.field]: Number(typed) }),
      });
      if (isOpen()) show({ kind: 'none' });
      say(typeof deed.done === 'string' ? deed.done : deed.done(answer));
    } catch (error) {
      setSent(false);
      const why = error instanceof Refused ? error.message : `nothing is known to have happened: ${String(error)}`;
      setTrouble(why);
      if (!isOpen()) say(`${title} ${why}`);
    }
  };
  return (
    <Dialog title={title}>
      <form class="body" onSubmit={(event) => void submit(event)}>
        <h2>
          <bdi>{visible(title)}</bdi>
        </h2>
        {change === undefined ? (
          <ul class="will">
            {(typeof deed.will === 'function' ? deed.will(snapshot) : deed.will).map(({ sign, text }, place) => (
              <li class="line" key={place}>
                <SignalSign is={sign} label="" />
                <bdi>{visible(text)}</bdi>
              </li>
            ))}
          </ul>
        ) : (
          <p class="trouble" role="alert">
            {visible(change)}
          </p>
        )}
        {number !== undefined && (
          <Field isFirst isNumber value={typed} set={setTyped}>
            {number.label}
          </Field>
        )}
        {needsReason && (
          <Field isFirst name="reason" hint="Holders who lose something see it" value={reason} set={setReason}>
            Reason
          </Field>
        )}
        {token !== undefined && (
          <>
            <Field isNumber name="token" value={typedToken} set={setTypedToken}>
              Type the token you expect to break <span class="soft">(now {count(token.meant)})</span>
            </Field>
            <p class="soft">{token.note}</p>
          </>
        )}
        {trouble !== '' && (
          <p class="trouble" role="alert">
            {visible(trouble)}
          </p>
        )}
        {not !== undefined && <p class="trouble">{not}.</p>}
        {isSent && (
          <p class="soft" role="status">
            Sent; waiting for the answer. Closing this does not stop it.
          </p>
        )}
        <div class="answers">
          <Button class="" onClick={() => show({ kind: 'none' })}>
            {isSent ? 'Close' : (deed.keep ?? 'Leave it')} <kbd>Esc</kbd>
          </Button>
          <button type="submit" class="button do" disabled={!isReady}>
            {isSent ? 'Sending…' : deed.label}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Returns a function that tells later whether the dialog that is open now still is. */
function isStillOpen(): () => boolean {
  const now = currentOverlay();
  return () => currentOverlay() === now;
}

interface FieldProps {
  readonly value: string;
  readonly set: (value: string) => void;
  readonly name?: string;
  readonly hint?: string;
  readonly isNumber?: boolean;
  /** Whether it has the focus when the dialog opens. */
  readonly isFirst?: boolean;
  /** The label of the field. */
  readonly children: ComponentChildren;
}

function Field({ value, set, name, hint, isNumber = false, isFirst = false, children }: FieldProps): JSX.Element {
  return (
    <label>
      {children}
      <input
        {...(isFirst && { 'data-first': true })}
        class={isNumber ? 'field short mono' : 'field'}
        type="text"
        {...(isNumber && { inputMode: 'numeric' })}
        autocomplete="off"
        name={name}
        placeholder={hint}
        value={value}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </label>
  );
}
