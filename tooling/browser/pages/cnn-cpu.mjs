/** A page that trains a convolutional network on the CPU engine alone. */
import '@polygrad/backend-cpu';

export { train } from './cnn-step.mjs';
