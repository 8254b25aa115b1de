// @ts-check
// What scripts do with their arguments before they install, build or run anything: most of them take minutes.

/** BSD's code for a command that was used wrongly, as the command line has it. */
export const EX_USAGE = 64;

/**
 * Prints the usage if it is asked for, and refuses an argument that the script does not know. Answers the arguments.
 *
 * @param {string} usage
 * @param {(argument: string) => boolean} isKnown
 */
export function argumentsFor(usage, isKnown) {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) {
    console.log(usage);
    process.exit(0);
  }
  const unknown = args.find((argument) => !isKnown(argument));
  if (unknown === undefined) return args;
  console.error(`${JSON.stringify(unknown)} is not known here.\n\n${usage}`);
  return process.exit(EX_USAGE);
}
