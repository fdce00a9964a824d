import { Cluster, StartOptions } from './index';

/**
 * Provides one cluster for a file of tests, reset before each of them. Read `kafka.brokers` within a test: a reset
 * disconnects all clients, and moves the brokers to other ports. A failed test prints the cluster's report; a passed one
 * fails if no request matched one of its faults.
 */
export function useKafka(options?: StartOptions): Cluster;
