/** The least a page can do with core: one operation, no engine. */
import { add, tensor } from '@polygrad/core/functions';

console.log(String(add(tensor([1, 2]), 3)));
