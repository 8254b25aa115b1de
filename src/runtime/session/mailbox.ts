/** The mailbox of a session: the key into which other processes write letters. Reads every letter once, in order. */
import type { Clock } from '../../clock.ts';
import type { Revision, Store } from '../../store/index.ts';
import { decode, mailboxKey } from '../layout.ts';
import { readEach } from '../stored.ts';
import { follow } from './follow.ts';

interface Host {
  readonly store: Store;
  readonly clock: Clock;
  saw(revision: Revision): void;
  readLetter(letter: unknown, revision: Revision): void;
  /** Letters were missed. Gives the revision after which they are read again. */
  missedLetters(): Promise<Revision>;
}

/** `over`: the session has ended. */
export async function followMailbox(host: Host, session: string, over: AbortSignal): Promise<void> {
  await follow(
    host.store,
    host.clock,
    { key: mailboxKey(session) },
    {
      changes: ({ changes }) => {
        for (const change of changes) {
          if (change.kind !== 'put') continue;
          const { modRevision } = change.pair;
          host.saw(modRevision);
          for (const letter of readEach([change.pair], (pair) => decode<unknown>(pair))) {
            host.readLetter(letter, modRevision);
          }
        }
      },
      resync: () => host.missedLetters(),
    },
    over,
  );
}
