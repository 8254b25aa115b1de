/** Whether what the page shows is live. A stream that says nothing for 10 s counts as broken: its heartbeat comes every 4 s. */

export const SILENT_MS = 10_000;

export type Link =
  | { readonly kind: 'loading'; readonly since: number }
  | { readonly kind: 'live'; readonly heardAt: number }
  /** The page is as it was at `heardAt`. */
  | { readonly kind: 'reconnecting'; readonly heardAt: number; readonly tries: number }
  /** The token is missing, unknown, expired or revoked. */
  | { readonly kind: 'refused'; readonly why: string }
  /** The page never had anything to show. */
  | { readonly kind: 'failed'; readonly why: string; readonly since: number; readonly tries: number };

export type LinkNews =
  | { readonly kind: 'heard' | 'tick' | 'broken'; readonly at: number; readonly why?: string }
  | { readonly kind: 'refused'; readonly why: string };

export function linkAfter(link: Link, news: LinkNews): Link {
  switch (news.kind) {
    case 'refused':
      return { kind: 'refused', why: news.why };
    case 'heard':
      return { kind: 'live', heardAt: news.at };
    case 'tick':
      if (link.kind !== 'live' || news.at - link.heardAt < SILENT_MS) return link;
      return { kind: 'reconnecting', heardAt: link.heardAt, tries: 0 };
    case 'broken':
      if (link.kind === 'live') return { kind: 'reconnecting', heardAt: link.heardAt, tries: 1 };
      if (link.kind === 'reconnecting') return { ...link, tries: link.tries + 1 };
      if (link.kind === 'refused') return link;
      return {
        ...{ kind: 'failed', why: news.why ?? 'the server does not answer' },
        ...{ since: link.since, tries: link.kind === 'failed' ? link.tries + 1 : 1 },
      };
  }
}

/** The first two tries come at once, because a server that was restarted is there again soon. */
export function pauseBefore(tries: number): number {
  return Math.min(5_000, 250 * 2 ** Math.max(0, tries - 1));
}
