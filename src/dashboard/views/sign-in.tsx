/** Says where to get a token: without one the server shows nothing. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { visible } from '../model/text.ts';
import { signIn } from '../ui/app.ts';
import { CommandLine } from '../ui/parts.tsx';
import { ClearLine } from './first-run.tsx';

export function SignIn({ why }: { why: string }): JSX.Element {
  const [token, setToken] = useState('');
  const submit = (event: Event): void => {
    event.preventDefault();
    if (token.trim() !== '') signIn(token.trim());
  };
  return (
    <div class="first-run">
      <ClearLine />
      <h1>Your token, please</h1>
      <p class="lead">
        The server shows nothing without one: {visible(why)}. It stays in this tab and is gone when you close it. On the
        machine of the server, this prints one:
      </p>
      <CommandLine>signalbox token local</CommandLine>
      <form class="tools line sign-in" onSubmit={submit}>
        <label class="grow">
          <span class="unseen">Token</span>
          <input
            class="field mono wide"
            type="password"
            autocomplete="off"
            spellcheck={false}
            placeholder="sbx_…"
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </label>
        <button type="submit" class="button main-deed">
          Show the board
        </button>
      </form>
      <p class="soft">
        For a colleague who may only look: <code>signalbox token create NAME --role viewer</code>, and send the link
        with <code>#token=…</code> at its end.
      </p>
    </div>
  );
}
