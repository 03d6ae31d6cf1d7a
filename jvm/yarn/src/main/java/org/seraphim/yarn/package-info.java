/**
 * The Application Master of Seraphim on YARN. It asks for a container for each process, starts it again when it ends, and
 * ends the application when the program has written its result.
 *
 * <p>{@link org.seraphim.yarn.Supervisor} decides what happens, {@link org.seraphim.yarn.ApplicationMaster} does it, and
 * {@link org.seraphim.yarn.Settings} describes what a client has to write.
 */
package org.seraphim.yarn;
