/** Once before all tests: the package as its users get it, for those that start real processes of it. */
import { build } from '../../scripts/ensure.mjs';

export function setup(): void {
  if (process.env['WITHOUT_BUILD'] === 'true') return;
  if (build() !== 0) throw new Error('the package could not be built');
}
