import { Cluster, StartOptions } from './index';

export interface TestOptions extends StartOptions {
  /** A new cluster for each test, where the server is shared, instead of a reset, which is faster. */
  fresh?: boolean;
}

/**
 * Provides one cluster for a file of tests, reset before each of them. Read `kafka.brokers` within a test: a reset
 * disconnects all clients, and moves the brokers to other ports. A failed test prints the cluster's report; a passed one
 * fails if no request matched one of its faults.
 */
export function useKafka(options?: TestOptions): Cluster;
