/**
 * Chooses the program that waits at a gate until the command may begin, and then becomes the command.
 *
 *     sh     the usual one: it starts fastest, and passes everything on that a shell understands
 *     perl   for what a shell would drop or change: variables with odd names, variables that mean something to shells,
 *            bytes that are not UTF-8. The command and its environment come through the gate's descriptor
 *     bash   instead of perl where there is none: it keeps variables with odd names
 *
 * Variables are never put into arguments, which every user of the machine can read.
 */
import { accessSync, constants } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { MARK } from './mark.ts';
import { originalVariables, type Text } from './original-bytes.ts';

export interface Gate {
  readonly file: string;
  readonly args: readonly string[];
  readonly argv0: string;
  /** The environment of the program while it waits. */
  readonly env: NodeJS.ProcessEnv;
  /** The text that lets the command go, once it is written to the descriptor. */
  readonly go: Text;
}

export interface GatedCommand {
  /** The file of the program. */
  readonly program: Text;
  readonly argv: readonly [Text, ...Text[]];
  readonly env: NodeJS.ProcessEnv;
}

/** Variables with a meaning for shells: a shell would fail on the value, change it, or behave differently. */
const SHELLS_OWN = new Set('IFS OPTIND OPTERR PPID LINENO RANDOM SECONDS TMOUT SHELLOPTS BASHOPTS PS1 PS4'.split(' '));
const PLACES = ['/usr/bin', '/bin', '/usr/local/bin'];

/** Throws if no program on this machine can pass everything on. */
export function gateFor(command: GatedCommand, descriptor: number, find = findTool): Gate {
  const { argv, env } = command;
  const originals = originalVariables(env);
  const isText =
    originals.size === 0 && typeof command.program === 'string' && argv.every((word) => typeof word === 'string');
  const odd = Object.keys(env).filter((name) => env[name] !== undefined && !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
  if (isText && odd.length === 0 && !Object.keys(env).some((name) => SHELLS_OWN.has(name))) {
    return shellGate('/bin/sh', command, descriptor);
  }
  const perl = find('perl', env);
  if (perl !== undefined) return perlGate(perl, command, originals, descriptor);
  if (!isText) throw new Error('arguments or variables that are not UTF-8 can be passed on only by perl: install perl');
  if (odd.length === 0) return shellGate('/bin/sh', command, descriptor);
  const bash = find('bash', env);
  if (bash !== undefined) return shellGate(bash, command, descriptor);
  throw new Error(
    `${odd.join(', ')}: sh drops variables with such names; install perl or bash, or unset them (env -u NAME)`,
  );
}

/**
 * Under the name `sh`, bash does not read the user's files first. A program whose name begins with a dash would be
 * taken for an option.
 */
function shellGate(file: string, { program, argv, env }: GatedCommand, descriptor: number): Gate {
  const waits = `read -r go <&${descriptor} || exit 125; exec ${descriptor}<&-; exec "$@"`;
  const [name, ...rest] = argv.map(String);
  const command = [name?.startsWith('-') === true ? String(program) : String(name), ...rest];
  return { file, argv0: 'sh', args: ['-c', waits, 'sh', ...command], env, go: '\n' };
}

/** The first field is the number of fields: if this process dies while it writes them, some are missing. */
const PERL = `
  open(my $gate, '<&=', shift) or exit 125;
  binmode $gate;
  my $all = do { local $/; <$gate> };
  close $gate;
  my ($count, $arguments, $program, @rest) = split /\\0/, defined $all ? $all : '', -1;
  exit 125 unless defined $program && @rest == $count && pop(@rest) eq '.';
  my @argv = splice @rest, 0, $arguments;
  %ENV = map { split /=/, $_, 2 } @rest;
  exec { $program } @argv;
  my $why = $!;
  print STDERR "$argv[0]: $why\\n";
  exit($why == 2 ? 127 : 126);`;

/** Starts perl with an environment of its own: that of the command could have settings for perl, or name a missing locale. */
function perlGate(
  file: string,
  { program, argv, env }: GatedCommand,
  originals: ReadonlyMap<string, readonly Buffer[]>,
  descriptor: number,
): Gate {
  const variables = Object.entries(env).flatMap(([name, value]) =>
    value === undefined || originals.has(name) ? [] : [`${name}=${value}`],
  );
  const rest: readonly Text[] = [...argv, ...variables, ...[...originals.values()].flat(), '.'];
  const fields: readonly Text[] = [String(rest.length), String(argv.length), program, ...rest];
  return {
    file,
    argv0: 'perl',
    args: ['-f', '-e', PERL, '--', String(descriptor)],
    env: { PERL_BADLANG: '0', [MARK]: env[MARK] },
    go: joinedWithNuls(fields),
  };
}

/** Looks where systems have the tool first: one that a version manager puts on the path is slower. */
function findTool(name: string, env: NodeJS.ProcessEnv): string | undefined {
  const path = (env['PATH'] ?? '').split(':').filter(isAbsolute);
  return [...PLACES, ...path].map((place) => join(place, name)).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function joinedWithNuls(fields: readonly Text[]): Buffer {
  if (fields.some((field) => field.includes('\0'))) throw new Error('an argument or a variable has a NUL in it');
  const nul = Buffer.alloc(1);
  return Buffer.concat(fields.flatMap((field, place) => [...(place === 0 ? [] : [nul]), bytesOf(field)]));
}

function bytesOf(text: Text): Buffer {
  return typeof text === 'string' ? Buffer.from(text) : text;
}
