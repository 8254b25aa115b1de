import { describe, expect, it } from 'vitest';
import { pushesIn } from './pushes.ts';

const LOCK = 'main-branch';

function found(text: string): readonly string[] {
  return pushesIn(text, '/repo', LOCK, '/home/ada').map(({ directory, branches }) => {
    const names = branches.map((branch) => (typeof branch === 'string' ? branch : `<${branch.name}>`));
    return `${directory ?? '?'}: ${names.join(' ')}`;
  });
}

describe('a push in a line of shell', () => {
  it.each([
    ['git push', '/repo: <current>'],
    ['git push origin main', '/repo: main'],
    ['git push -u origin HEAD:main feature', '/repo: main feature'],
    ['git push origin +feature:refs/heads/main', '/repo: main'],
    ['git push origin --delete main', '/repo: main'],
    ['git push origin "$(git branch --show-current)"', '/repo: <current>'],
    ['git push --all', '/repo: <all>'],
    ['git push origin "refs/heads/*"', '/repo: <all>'],
    ['git -C ../other push origin main', '/other: main'],
    ['git -c push.default=current --no-pager push', '/repo: <current>'],
    ['cd sub && git push', '/repo/sub: <current>'],
    ['cd /a && cd b; git -C ../c push', '/a/c: <current>'],
    ['cd ~/work && git push', '/home/ada/work: <current>'],
    ['cd "$WHERE" && git push origin main', '?: main'],
    ['(cd sub && make) && git push', '/repo: <current>'],
    ['make test && GIT_TRACE=1 /usr/bin/git push origin main 2>&1 | tail -3', '/repo: main'],
    ['sudo -u bob git push', '/repo: <current>'],
    ['timeout 60 git push origin main', '/repo: main'],
    ["bash -lc 'cd sub && git push origin main'", '/repo/sub: main'],
    ['if make; then git push; fi', '/repo: <current>'],
    ['echo "$(git push origin main)"', '/repo: main'],
    ['signalbox run --lock docs -- git push origin main', '/repo: main'],
    ['git \\\n  push origin main', '/repo: main'],
  ])('is seen in: %s', (text, expected) => {
    expect(found(text)).toEqual([expected]);
  });

  it.each([
    'git status; git pull',
    'git push --dry-run origin main',
    'git push --tags',
    'git push origin tag v1',
    'git push origin refs/tags/v1',
    'echo git push origin main',
    'echo "git push origin main"',
    "git commit -m 'then git push origin main'",
    'git commit -m "fix; git push"',
    '# git push origin main',
    'git stash push',
    "cat > notes.md <<'EOF'\ngit push origin main\nEOF\nls",
    'cat <<-EOF\n\tgit push\n\tEOF\nls',
    'signalbox run --lock main-branch -- git push origin main',
    'npx signalbox run --wait 90s --ticket --lock=main-branch -- sh -c "git push origin main"',
    'cd /elsewhere',
    '',
    "'",
    '$(',
    '<<',
  ])('is not seen in: %s', (text) => {
    expect(found(text)).toEqual([]);
  });
});
