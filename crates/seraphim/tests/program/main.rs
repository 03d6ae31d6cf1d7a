//! Tests of the program: they start it as its users do, in one process and as a cluster of processes.
//!
//! They are one crate, so that the code that they share is compiled and linked once, and so that tests of several files,
//! most of which wait for other processes, run at the same time.

mod common;

mod a_family_asks_for_what_it_reads;
mod a_job_outlives_its_master;
mod a_model_is_reproduced;
mod a_new_master_goes_on;
mod a_program_trains;
mod a_replica_takes_over;
mod any_input_gives_the_same_model;
mod bad_input;
mod bad_input_on_a_cluster;
mod boosted_trees;
mod checkpoints_in_other_stores;
mod checkpoints_on_request;
mod clients_of_a_cluster;
mod clocks_on_servers;
mod clusters_of_records;
mod columns_are_scaled_alike;
mod commands_speak_plainly;
mod digits_of_doubles;
mod epochs_are_chosen_by_a_holdout;
mod formats_mix;
mod functions_of_modules;
mod functions_on_models;
mod functions_on_servers;
mod gauc_equals_a_plain_reference;
mod generate;
mod interrupted;
mod interrupted_anywhere;
mod it_converges_with_a_slow_task;
mod job_file;
mod jobs_go_on_after_a_loss;
mod jobs_on_a_cluster;
mod many_tasks_fail_as_one;
mod metrics_while_a_job_runs;
mod models_as_tables;
mod modules_on_a_cluster;
mod modules_on_servers;
mod no_model_with_nan;
mod one_model_everywhere;
mod pairs_of_features;
mod parameter_service;
mod predict_equals_training_scores;
mod progress_of_a_job;
mod report;
mod roles_of_records;
mod same_seed_same_bytes;
mod scores_do_not_depend_on_workers;
mod scoring_on_a_cluster;
mod servers_that_are_lost_hold_nothing;
mod sessions_have_checkpoints;
mod slow_workers;
mod the_bound_holds_on_servers;
mod the_logs_of_processes_join;
mod the_users_labels;
mod train_predict_evaluate;
mod training_continues_from_a_checkpoint;
mod two_trainings_with_one_name;
mod unknown_features;
mod values_travel_rounded;
mod weights_are_counts;
mod what_commands_print;
mod workers_have_data_of_their_own;
