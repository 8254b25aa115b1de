import { describe, expect, it } from 'vitest';
import { fitted } from './help-width.ts';

function lines(...all: readonly string[]): string {
  return all.join('\n');
}

describe('a help text', () => {
  it('that fits stays as it was written', () => {
    const text = lines('Examples:', '  signalbox who       who holds what', '  signalbox status    everything', '');
    expect(fitted(text, 40)).toBe(text);
  });

  it('has its paragraphs filled anew', () => {
    const text = lines('One two three four (default:', 'five six), seven eight.', '', 'Nine.');
    expect(fitted(text, 20)).toBe(lines('One two three four', '(default: five six),', 'seven eight.', '', 'Nine.'));
  });

  it('has what an example does below it, for all examples of a list', () => {
    const text = lines('Examples:', '  signalbox who       who holds what', '  signalbox status    all that there is');
    expect(fitted(text, 38)).toBe(
      lines('Examples:', '  signalbox who', '      who holds what', '  signalbox status', '      all that there is'),
    );
  });

  it.each([
    "  signalbox run --lock main --guard 'command: {cmd: make test}' --wait 5m -- git push",
    `  signalbox task run -- sh -c 'jq -r .commit "$SIGNALBOX_TASK_FILE" | xargs git checkout'`,
    `  signalbox guard check -e '{"all":[{"branchClean":"main"},{"fileExists":"ready"}]}'`,
    '  signalbox pipeline list --status done --names | xargs -n1 signalbox pipeline forget',
    '  curl -H "Authorization: Bearer $(signalbox token local)" http://127.0.0.1:7300/v1/who',
  ])('has examples that a shell takes as they were: %s', (example) => {
    const text = fitted(example, 76);
    expect(text.split('\n').filter((line) => line.length > 76)).toEqual([]);
    expect(text.split('\n').length).toBeGreaterThan(1);
    expect(text.replace(/ \\\n {6}/g, ' ')).toBe(example);
  });

  it('has explanations of words in a column', () => {
    expect(fitted(lines('  slow   it is renewed, but too late', '  gone   it has ended'), 30)).toBe(
      lines('  slow   it is renewed, but', '         too late', '  gone   it has ended'),
    );
  });

  it('breaks exit codes between two of them', () => {
    const text = lines('Exit codes: 0 done · 1 not healthy · 64 usage', '            69 store unreachable');
    expect(fitted(text, 36)).toBe(
      lines('Exit codes: 0 done · 1 not healthy', '            64 usage', '            69 store unreachable'),
    );
  });
});
