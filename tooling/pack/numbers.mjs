// Integers of any size through the packed package: no engine is there.
import { bigintType, numberTensor } from '@polygrad/numbers';

const cubes = numberTensor([2n ** 40n, 3n], bigintType).pow(3);
const values = cubes.array().join();
if (values !== `${2n ** 120n},27`) throw new Error(`third powers of 2 ** 40 and 3: ${values}`);
