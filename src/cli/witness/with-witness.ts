/** Opens a store for the commands that need the record of its changes. */
import type { Command } from '../command.ts';
import { Failure } from '../../failure.ts';
import type { Signalbox } from '../../runtime/signalbox.ts';
import { WITNESS_IS_OFF } from '../../runtime/witness/log.ts';
import { withBox } from '../store.ts';

/** The store keeps no record of its changes. */
export class WitnessOff extends Failure {
  constructor(message: string = WITNESS_IS_OFF) {
    super('invalid', message);
    this.name = 'WitnessOff';
  }
}

/** Refuses if the witness is off: otherwise a store without a record would look like one in which nothing happened. */
export function withWitness<T>(
  command: Command,
  work: (box: Signalbox, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return withBox(command, async (box, signal) => {
    if (!(await box.witness.isOn())) throw new WitnessOff();
    return work(box, signal);
  });
}
