package org.seraphim.yarn;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.hadoop.yarn.api.records.ContainerExitStatus;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What passes between the Supervisor and the outside: the command, the codes of YARN, the file with the result. */
class BoundaryTest {
  @Test
  void the_command_is_what_bash_reads_between_double_quotes() {
    assertEquals("exec ./run --name \\\"a-\\$SERAPHIM_RANK\\\" \\`x\\` \\\\ 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr",
        Launcher.command("./run --name \"a-$SERAPHIM_RANK\" `x` \\"));
  }

  @ParameterizedTest
  @ValueSource(ints = {
      ContainerExitStatus.PREEMPTED, ContainerExitStatus.ABORTED, ContainerExitStatus.DISKS_FAILED,
      ContainerExitStatus.KILLED_BY_RESOURCEMANAGER, ContainerExitStatus.KILLED_AFTER_APP_COMPLETION})
  void what_yarn_takes_away_is_a_loss(int code) {
    assertTrue(ApplicationMaster.exit(code, "").isLoss);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 137, 143, 154, ContainerExitStatus.INVALID, ContainerExitStatus.KILLED_EXCEEDED_PMEM})
  void what_ends_by_itself_is_a_failure(int code) {
    assertFalse(ApplicationMaster.exit(code, "").isLoss);
  }

  @Test
  void a_result_is_a_status_and_a_text() {
    assertResult(Result.Status.SUCCEEDED, "", "succeeded");
    assertResult(Result.Status.FAILED, "a\nb", "failed\r\na\nb\n");
    assertResult(Result.Status.CANCELLED, "by the user", "cancelled\nby the user\n");
    assertEquals(Result.Status.FAILED, Result.parse("success\n").status);
    assertNull(Result.parse(""));
  }

  private static void assertResult(Result.Status status, String text, String content) {
    Result result = Result.parse(content);
    assertEquals(status, result.status);
    assertEquals(text, result.text);
  }
}
