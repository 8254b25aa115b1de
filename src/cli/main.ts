import { runCommandLine } from './program.ts';

void runCommandLine(process.argv.slice(2));
