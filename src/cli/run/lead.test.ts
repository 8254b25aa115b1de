import { expect, it } from 'vitest';
import { leadRequestOf } from './lead.ts';

it.each(['2s', '15s', '1m', '1h'])('a command that is not told its grace is gone before a lease of %s ends', (ttl) => {
  const { graceMs, ttlMs } = leadRequestOf(['true'], { name: 'shop', ttl });
  expect(graceMs).toBeGreaterThan(0);
  expect(graceMs).toBeLessThan(ttlMs / 10);
});

it('a command gets the grace that it is given', () => {
  expect(leadRequestOf(['true'], { name: 'shop', grace: '5s' }).graceMs).toBe(5000);
});
