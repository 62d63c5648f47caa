/** What runners written in plain JavaScript get from the harness: inputs and parameters that all participants share. */
import { fill, label, labelSets, probePositions } from './inputs.ts';
import { inputsOf, parameterOf } from './networks.ts';

export interface Tools {
  readonly fill: typeof fill;
  readonly label: typeof label;
  readonly labelSets: number;
  readonly probePositions: typeof probePositions;
  readonly inputsOf: typeof inputsOf;
  readonly parameterOf: typeof parameterOf;
}

export const tools: Tools = { fill, label, labelSets, probePositions, inputsOf, parameterOf };
