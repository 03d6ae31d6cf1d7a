/**
 * The client of the parameter service of Seraphim, in plain Java.
 *
 * <p>A {@link org.seraphim.client.ParameterSession} owns matrices on servers. {@link org.seraphim.client.ServerMatrix}
 * reads and changes their rows. The protocol is described in {@code docs/protocol.md}, the service in
 * {@code docs/parameter-service.md}. All numbers on the wire are little-endian.
 */
package org.seraphim.client;
