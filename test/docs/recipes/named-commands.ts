/** Which commands and options of signalbox are called in a page, and which of them do not exist. */
import type { Command } from 'commander';
import { blocksOf } from '../blocks.ts';

/** With what is quoted in it; a quote that does not end on its line was begun before the call. */
const WORD = /(?:"[^"\n]*"|'[^'\n]*'|[^\s|;&)`"'<>\\])+/;
/** `signalbox …`, up to the end of that command. */
const CALL = new RegExp(`(?<![\\w/.-])signalbox((?:(?: |\\\\\n)+${WORD.source})*)`, 'g');

/** What is meant for a shell on a page: its blocks, and what is printed as code between them. */
export function shellCodeOf(page: string, text: string): string {
  const blocks = blocksOf(page, text).filter(({ language }) => /^sh\b|recipe/.test(language));
  const between = text.replace(/^```.*\n[^]*?^```$/gm, '');
  const spans = [...between.matchAll(/`([^`]+)`/g)].map(([, code]) => code as string);
  return [...blocks.map(({ code }) => code), ...spans].join('\n');
}

export function unknownIn(text: string, program: Command): readonly string[] {
  return [...text.matchAll(CALL)].flatMap(([call, words = '']) =>
    problems(words.match(new RegExp(WORD, 'g')) ?? [], program).map((problem) => `${call}: ${problem}`),
  );
}

function problems(words: readonly string[], program: Command): readonly string[] {
  let command = program;
  const unknown: string[] = [];
  for (const word of words) {
    if (word === '--') break;
    const inner = command.commands.find((one) => one.name() === word);
    if (inner !== undefined) command = inner;
    else if (word.startsWith('-')) unknown.push(...(hasOption(command, word) ? [] : [word]));
    // What follows is an argument, or the value of an option; a group of commands has neither.
    else if (command.commands.length > 0) return [...unknown, word];
  }
  return unknown;
}

export function hasOption(command: Command, word: string): boolean {
  const option = word.replace(/=.*$/, '');
  return command.options.some(({ long, short }) => long === option || short === option) || option === '--help';
}

export function everyCommand(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}
