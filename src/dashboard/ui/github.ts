/** Asks the server for the locks on GitHub while they are shown. GitHub sends no events, so the server polls it. */
import { useEffect, useState } from 'preact/hooks';
import { get } from '../live/api.ts';
import type { Snapshot } from '../live/store.ts';
import { gitHubIn, type GitHubLocks } from '../model/github.ts';

const AFTER_FAILURE_MS = 15_000;

/** The last answer stays for the next view that asks. */
let last: GitHubLocks | undefined;

/** Undefined until the server has answered. */
export function useGitHub({ link }: Snapshot): GitHubLocks | undefined {
  const [found, setFound] = useState(last);
  const isLive = link.kind === 'live';
  useEffect(() => {
    if (!isLive) return undefined;
    const over = new AbortController();
    let timer = 0;
    const ask = async (): Promise<void> => {
      if (!document.hidden) {
        const answer = await get('/v1/github/locks', over.signal).catch(() => undefined);
        if (over.signal.aborted) return;
        if (answer !== undefined) setFound((last = gitHubIn(answer)));
      }
      // A server that follows no repository will not start to.
      if (last?.repository === null) return;
      timer = window.setTimeout(() => void ask(), last?.everyMs ?? AFTER_FAILURE_MS);
    };
    void ask();
    return () => {
      over.abort();
      clearTimeout(timer);
    };
  }, [isLive]);
  return found;
}
