"""Reading and writing the files of batches and of services; reading studies.

This is the edge of the package: nothing else parses, and only here pydantic is used. Whatever is wrong with an input
raises one :class:`~mig_opt.errors.InputError` that lists *all* its problems, each with its path
(``tasks[3].times.2: must be > 0 seconds, is -1.0``). Files are UTF-8 and carry the name of their format:

=================  ===============================  ===============================================================
kind               ``"schema"``                     functions
=================  ===============================  ===============================================================
batch              ``mig-opt/batch/1``              :func:`read_batch`, :func:`write_batch`
schedule           ``mig-opt/schedule/1``           :func:`read_schedule`, :func:`write_schedule`
result             ``mig-opt/result/1``             :func:`read_result`, :func:`write_result`
certificate        ``mig-opt/certificate/1``        :func:`read_certificate`, :func:`write_certificate`
study              ``mig-opt/study/1``              :func:`mig_opt.studies.read_study`
services           ``mig-opt/services/1``           :func:`read_demand`, :func:`write_demand`
profiles           ``mig-opt/profiles/1``           :func:`read_profiles`, :func:`write_profiles`
deployment         ``mig-opt/deployment/1``         :func:`read_deployment`, :func:`write_deployment`
deployment-result  ``mig-opt/deployment-result/1``  :func:`read_deployment_result`, :func:`write_deployment_result`
trace              ``mig-opt/trace/1``              :func:`read_trace`, :func:`write_trace`
state              ``mig-opt/state/1``              :func:`read_state`, :func:`write_state`
=================  ===============================  ===============================================================

:func:`json_schema` describes each of them in full. :mod:`mig_opt` has these functions, all but those of deployment
results. All times are seconds, all memory is in GB, sizes are numbers of compute slices.
"""
